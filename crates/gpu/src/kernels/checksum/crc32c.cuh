// CRC-32C by tables (docs/format.md). A CRC is linear: that of a row of bytes is the sum (exclusive or)
// of its pieces' CRCs, each multiplied by x to the power of the bits behind it, modulo the polynomial.
// Bit 31 of a CRC is the coefficient of x^0. CPU twins: kernels::checksum.

static const u32 POLYNOMIAL = 0x82F63B78u;  // Castagnoli's, reflected.

// The products of each byte of a CRC and a power of x: of the lowest byte of all 256 values in [0].
typedef u32 ByteProducts[4][256];

// The product of `crc` and the power of x that `products` are of.
__device__ inline u32 multiplied(const ByteProducts& products, u32 crc) {
    return products[0][crc & 255] ^ products[1][crc >> 8 & 255] ^ products[2][crc >> 16 & 255] ^
           products[3][crc >> 24];
}

// a × x modulo the polynomial.
__device__ inline u32 times_x(u32 a) { return a >> 1 ^ (a & 1) * POLYNOMIAL; }

// a × b modulo the polynomial.
__device__ inline u32 multiply(u32 a, u32 b) {
    u32 product = 0;
#pragma unroll 8
    for (u32 i = 0; i < 32; i++) {
        product ^= (a >> 31) * b;
        a <<= 1;
        b = times_x(b);
    }
    return product;
}
