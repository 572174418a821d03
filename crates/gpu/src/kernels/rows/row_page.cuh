// Lists on a page of rows (docs/format.md, "Rows"), as one thread reads them.
//
// A neighbour by its number takes the page's header, the list's, an entry of its table and the groups before
// the neighbour in its chunk: 64 gaps at most. Nothing beside the page is read, whatever it has. CPU twin:
// format::rows::list.

static const u32 PAGE_BYTES = 4096, HEADER_BYTES = 32;
static const u32 BEGAN_EARLIER = 1, GOES_ON = 2;  // Flags of a page.
static const u32 CHUNK = 64, GROUP = 16;          // Neighbours.
static const u32 MOST_LISTS = (PAGE_BYTES - HEADER_BYTES) / 2;  // Each has an entry of two bytes.
static const u64 MOST_NEIGHBORS = (u64)PAGE_BYTES * GROUP;      // A group takes a byte at least.
static const u32 IMPOSSIBLE = ~0u;

__device__ inline u32 byte_of(const u8* page, u32 at) { return page[at % PAGE_BYTES]; }

// The `bytes` bytes from byte `at` on, the lowest first.
__device__ inline u64 number_of(const u8* page, u32 at, u32 bytes) {
    u64 number = 0;
    for (u32 i = 0; i < bytes; i++) number |= (u64)byte_of(page, at + i) << 8 * i;
    return number;
}

// The varint at byte `at`, which moves behind it.
__device__ inline u64 varint_of(const u8* page, u32& at) {
    u64 number = 0;
    for (u32 shift = 0; shift < 64; shift += 7) {
        u32 byte = byte_of(page, at++);
        number |= (u64)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return number;
}

// The `width` bits from bit `at` on, 32 at most.
__device__ inline u32 bits_of(const u8* page, u32 at, u32 width) {
    static const u32 WORDS = PAGE_BYTES / 4;
    const u32* words = (const u32*)page;
    u32 low = words[at / 32 % WORDS], high = words[(at / 32 + 1) % WORDS];
    return (u32)(((u64)high << 32 | low) >> at % 32) & (u32)((1ull << width) - 1);
}

// The vertex of a page's first list, and the number of its lists.
__device__ inline u64 first_vertex_of(const u8* page) { return number_of(page, 8, 8); }
__device__ inline u32 lists_of(const u8* page) { return (u32)number_of(page, 6, 2); }

// A list, or the piece of it that is on a page.
struct PageList {
    u64 length;      // Neighbours of the piece.
    u64 whole;       // Neighbours of the list.
    u64 earlier;     // Of those, on earlier pages.
    u64 base;        // The neighbour before the piece.
    u32 base_bytes;  // Of an entry of the table, beside two.
    u32 table;       // The byte at which the table begins that has an entry for each chunk but the first,
    u32 groups;      // and at which the groups begin.
};

// Finds the list of `vertex`; false if the page does not have it.
__device__ inline bool find_list(const u8* page, u32 vertex, PageList& list) {
    list = {};
    u32 flags = byte_of(page, 5), count = lists_of(page);
    u64 place = vertex - first_vertex_of(page);
    if (place >= count) return false;
    bool began_earlier = place == 0 && flags & BEGAN_EARLIER;
    bool is_piece = began_earlier || place + 1 == count && flags & GOES_ON;
    if (began_earlier) list.earlier = number_of(page, 24, 8);
    u32 ends = HEADER_BYTES + 2 * (u32)place;
    u32 begin = place > 0 ? (u32)number_of(page, ends - 2, 2) : 0;
    if (begin == (u32)number_of(page, ends, 2)) return true;
    u32 at = HEADER_BYTES + 2 * count + begin;

    list.whole = list.length = varint_of(page, at);
    if (is_piece) {
        list.whole = varint_of(page, at);
        list.base = varint_of(page, at);
    }
    if (list.length > CHUNK) {
        list.base_bytes = byte_of(page, at++);
        list.table = at;
        at += ((u32)list.length - 1) / CHUNK * (list.base_bytes + 2);
    }
    list.groups = at;
    return list.length <= MOST_NEIGHBORS && list.base_bytes <= 8;
}

// The byte at which the groups of a chunk begin; `base` becomes the neighbour before it.
__device__ inline u32 enter_chunk(const u8* page, const PageList& list, u32 chunk, u32& base) {
    if (chunk == 0) {
        base = (u32)list.base;
        return list.groups;
    }
    u32 entry = list.table + (chunk - 1) * (list.base_bytes + 2);
    base = (u32)number_of(page, entry, list.base_bytes);
    return list.groups + (u32)number_of(page, entry + list.base_bytes, 2);
}

// Neighbour `k` (from 0) of `vertex`, which has `degree`; IMPOSSIBLE if the page does not have it.
__device__ inline u32 kth_neighbor(const u8* page, u32 vertex, u64 degree, u64 k) {
    PageList list;
    if (!find_list(page, vertex, list)) return IMPOSSIBLE;
    if (list.whole != degree || k < list.earlier || k - list.earlier >= list.length) return IMPOSSIBLE;
    u32 number = (u32)(k - list.earlier), neighbor, at = enter_chunk(page, list, number / CHUNK, neighbor);
    for (u32 left = number % CHUNK + 1; left > 0;) {
        u32 width = byte_of(page, at++), gaps = min(left, GROUP);
        if (width > 32) return IMPOSSIBLE;
        for (u32 i = 0; i < gaps; i++) neighbor += bits_of(page, 8 * at + i * width, width);
        at += 2 * width;
        left -= gaps;
    }
    return neighbor;
}

// Shows every neighbour of a chunk to `visit`, and IMPOSSIBLE where there is none.
template <typename Visit>
__device__ inline void each_of_chunk(const u8* page, const PageList& list, u32 chunk, Visit visit) {
    u32 neighbor, at = enter_chunk(page, list, chunk, neighbor);
    for (u32 left = min((u32)list.length - chunk * CHUNK, CHUNK); left > 0;) {
        u32 width = byte_of(page, at++), gaps = min(left, GROUP);
        if (width > 32) return visit(IMPOSSIBLE);
        for (u32 i = 0; i < gaps; i++) visit(neighbor += bits_of(page, 8 * at + i * width, width));
        at += 2 * width;
        left -= gaps;
    }
}
