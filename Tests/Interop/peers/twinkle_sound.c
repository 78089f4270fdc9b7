// A sound card of files for twinkle-console, preloaded into it: ALSA's null device has no clock, so speech would leave as fast as it is read.
// What the microphone hears is the WAV file $TWINKLE_PLAY, mono, 16 bit, 8 kHz, from the first call on; what the loudspeaker plays goes to
// $TWINKLE_RECORD of the same kind, with silence where the program had given it nothing in time.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct snd_pcm snd_pcm_t;  // of ALSA, whose headers this needs nothing else of
enum { RATE = 8000, CAPTURE = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *said, *heard;
static double read_until, began;
static int64_t written;

int snd_pcm_stream(snd_pcm_t *pcm);

static double now(void) {
  struct timespec it;
  clock_gettime(CLOCK_MONOTONIC, &it);
  return it.tv_sec + it.tv_nsec / 1e9;
}

static void sleep_until(double moment) {
  struct timespec it = {.tv_sec = (time_t)moment, .tv_nsec = (long)((moment - (double)(time_t)moment) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &it, NULL)) {}
}

long snd_pcm_readi(snd_pcm_t *pcm, void *buffer, unsigned long frames) {
  (void)pcm;
  // A card that was closed meanwhile has nothing from before.
  if (now() - read_until > 0.2) read_until = now();
  read_until += frames / (double)RATE;
  sleep_until(read_until);
  const char *path = getenv("TWINKLE_PLAY");
  if (!said && path && (said = fopen(path, "rb"))) fseek(said, 44, SEEK_SET);
  size_t count = said ? fread(buffer, 2, frames, said) : 0;
  memset((int16_t *)buffer + count, 0, (frames - count) * 2);
  return (long)frames;
}

static int64_t played(void) { return (int64_t)((now() - began) * RATE); }

static void write_head(uint32_t bytes) {
  uint32_t words[] = {36 + bytes, 16, 1 | 1 << 16, RATE, 2 * RATE, 2 | 16 << 16, bytes};
  fseek(heard, 0, SEEK_SET);
  fwrite("RIFF", 1, 4, heard), fwrite(words, 4, 1, heard), fwrite("WAVEfmt ", 1, 8, heard);
  fwrite(words + 1, 4, 5, heard), fwrite("data", 1, 4, heard), fwrite(words + 6, 4, 1, heard);
  fseek(heard, 0, SEEK_END);
}

long snd_pcm_writei(snd_pcm_t *pcm, const void *buffer, unsigned long frames) {
  (void)pcm;
  pthread_mutex_lock(&lock);
  const char *path = getenv("TWINKLE_RECORD");
  if (!heard && path && (heard = fopen(path, "wb+"))) began = now(), write_head(0);
  if (heard) {
    for (int16_t silence = 0; written < played(); written++) fwrite(&silence, 2, 1, heard);
    fwrite(buffer, 2, frames, heard);
    written += (int64_t)frames;
    write_head((uint32_t)written * 2);
    fflush(heard);
  }
  pthread_mutex_unlock(&lock);
  return (long)frames;
}

int snd_pcm_delay(snd_pcm_t *pcm, long *frames) {
  pthread_mutex_lock(&lock);
  int64_t waiting = snd_pcm_stream(pcm) == CAPTURE ? 0 : written - played();
  *frames = waiting > 0 ? (long)waiting : 0;
  pthread_mutex_unlock(&lock);
  return 0;
}

int snd_pcm_hwsync(snd_pcm_t *pcm) {
  (void)pcm;
  return 0;
}
