// Lists on storage: the pages that have them, and those of which kernels want some. Rust: rows::stored.

static const u32 NONE = ~0u;          // A page that is not wanted, a vertex that was not met.
static const u32 CLAIMED = NONE - 1;  // A page whose number among those that are wanted comes.

struct Stored {
    const u64* index;    // Of each page, its first vertex and how many neighbours of that are on earlier ones.
    u32* slots;          // Of each page, its number among those that are wanted, NONE if it is not.
    RowRequest* wanted;  // Pages, each to its number modulo `piece`.
    u32* count;          // Of those.
    u32 pages;
    u32 piece;
    u32 vertices;
    u32 reserved;
};

// Pages that were brought.
struct Decoding {
    const u8* pages;  // In device memory, one behind the other: those that are wanted from `first` on.
    u32* impossible;  // A vertex whose list is not as its page should have it.
    u32 first;
    u32 count;
};

// The page that has neighbour `k` of `vertex`: the last whose entry is not above the two.
__device__ inline u32 page_of(const Stored& stored, u32 vertex, u64 k) {
    u32 low = 0, high = stored.pages;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        u64 first = stored.index[2 * (u64)middle], ordinal = stored.index[2 * (u64)middle + 1];
        bool is_above = first > vertex || first == vertex && ordinal > k;
        (is_above ? high : low) = middle;
    }
    return low;
}

// Whether the list of `vertex`, a piece of which is on `page`, goes on on the next page.
__device__ inline bool goes_on(const Stored& stored, u32 page, u32 vertex) {
    return page + 1 < stored.pages && stored.index[2 * (u64)page + 2] == vertex;
}

// Asks for a page, unless somebody did so before.
__device__ inline void want_page(const Stored& stored, u32 page) {
    u32* at = stored.slots + page;
    if (*(volatile u32*)at != NONE || atomicCAS(at, NONE, CLAIMED) != NONE) return;
    u32 slot = atomicAdd(stored.count, 1u);
    stored.wanted[slot] = RowRequest{page, slot % stored.piece};
    *at = slot;
}
