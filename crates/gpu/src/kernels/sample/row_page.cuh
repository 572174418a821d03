// A neighbour by its number in a list, on a page of rows (docs/format.md, "Rows"), by one thread.
//
// Reads the page's header, the list's, an entry of its table and the groups before the neighbour in its
// chunk: 64 gaps at most. Nothing beside the page is read, whatever it has. CPU twin: format::rows::list.

static const u32 PAGE_BYTES = 4096, HEADER_BYTES = 32;
static const u32 BEGAN_EARLIER = 1, GOES_ON = 2;  // Flags of a page.
static const u32 CHUNK = 64, GROUP = 16;          // Neighbours.
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

// Neighbour `k` (from 0) of `vertex`, which has `degree`; IMPOSSIBLE if the page does not have it.
__device__ inline u32 kth_neighbor(const u8* page, u32 vertex, u64 degree, u64 k) {
    u32 flags = byte_of(page, 5), count = (u32)number_of(page, 6, 2);
    u64 place = vertex - number_of(page, 8, 8), earlier = 0, base = 0;
    if (place >= count) return IMPOSSIBLE;
    bool began_earlier = place == 0 && flags & BEGAN_EARLIER;
    bool is_piece = began_earlier || place + 1 == count && flags & GOES_ON;
    if (began_earlier) earlier = number_of(page, 24, 8);
    u32 at = HEADER_BYTES + 2 * count;
    if (place > 0) at += (u32)number_of(page, HEADER_BYTES + 2 * ((u32)place - 1), 2);

    u64 length = varint_of(page, at), whole = length;
    if (is_piece) {
        whole = varint_of(page, at);
        base = varint_of(page, at);
    }
    if (whole != degree || k < earlier || k - earlier >= length) return IMPOSSIBLE;
    u32 number = (u32)(k - earlier), chunk = number / CHUNK;
    if (length > CHUNK) {
        u32 base_bytes = byte_of(page, at++), table = at;
        if (base_bytes > 8) return IMPOSSIBLE;
        at += ((u32)length - 1) / CHUNK * (base_bytes + 2);
        if (chunk > 0) {
            table += (chunk - 1) * (base_bytes + 2);
            base = number_of(page, table, base_bytes);
            at += (u32)number_of(page, table + base_bytes, 2);
        }
    }
    u32 neighbor = (u32)base;
    for (u32 left = number % CHUNK + 1; left > 0;) {
        u32 width = byte_of(page, at++), gaps = min(left, GROUP);
        if (width > 32) return IMPOSSIBLE;
        for (u32 i = 0; i < gaps; i++) neighbor += bits_of(page, 8 * at + i * width, width);
        at += 2 * width;
        left -= gaps;
    }
    return neighbor;
}
