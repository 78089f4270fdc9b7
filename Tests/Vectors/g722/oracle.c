// Prints what spandsp (LGPL, Debian's libspandsp-dev) makes of the signal that Tests/AudioCodecs/G722Tests.swift builds:
//   cc oracle.c -lspandsp -o oracle && ./oracle
#include <stdint.h>
#include <stdio.h>
#include <spandsp.h>
#define N 32000
static int16_t in[N], out[2 * N];
static uint8_t coded[N];
static uint64_t fnv(const void *bytes, int count) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int k = 0; k < count; k++) hash = (hash ^ ((const uint8_t *)bytes)[k]) * 0x100000001b3ull;
  return hash;
}
int main(void) {
  uint32_t state = 1;
  int32_t low = 0;
  for (int k = 0; k < N; k++) {
    state = state * 1664525u + 1013904223u;
    int32_t noise = (int32_t)state >> 17;
    low += (noise - low) / 8;
    // Silence, rumble, noise at full scale, a square wave whose pitch rises.
    switch (k / 4000 % 4) {
    case 0: in[k] = k % 4000 < 2000 ? 0 : (int16_t)(noise >> 8); break;
    case 1: in[k] = (int16_t)low; break;
    case 2: in[k] = (int16_t)(noise * 2); break;
    default: in[k] = (int16_t)((k * (k / 64) / 512) % 2 ? 12000 : -12000); break;
    }
  }
  g722_encode_state_t *e = g722_encode_init(NULL, 64000, 0);
  int bytes = g722_encode(e, coded, in, N);
  g722_decode_state_t *d = g722_decode_init(NULL, 64000, 0);
  int samples = g722_decode(d, out, coded, bytes);
  printf("wide: %d octets %016llx, %d samples %016llx\n", bytes, (unsigned long long)fnv(coded, bytes), samples,
         (unsigned long long)fnv(out, samples * 2));
  // Any octets at all.
  for (int k = 0; k < N / 2; k++) { state = state * 1664525u + 1013904223u; coded[k] = state >> 24; }
  d = g722_decode_init(NULL, 64000, 0);
  samples = g722_decode(d, out, coded, N / 2);
  printf("any octets: %d samples %016llx\n", samples, (unsigned long long)fnv(out, samples * 2));
  d = g722_decode_init(NULL, 64000, G722_SAMPLE_RATE_8000);
  samples = g722_decode(d, out, coded, N / 2);
  printf("narrow, any octets: %d samples %016llx\n", samples, (unsigned long long)fnv(out, samples * 2));
  e = g722_encode_init(NULL, 64000, G722_SAMPLE_RATE_8000);
  bytes = g722_encode(e, coded, in, N);
  printf("narrow: %d octets %016llx\n", bytes, (unsigned long long)fnv(coded, bytes));
  return 0;
}
