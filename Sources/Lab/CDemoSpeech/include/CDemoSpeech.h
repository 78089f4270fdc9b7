// The demo's two sentences, from the files beside speech.c. A Swift array literal of this size takes 20 s to compile.
#pragma once
#include <stddef.h>

typedef struct {
  const unsigned char *octets;
  size_t length;
} CDemoSpeech;

extern const CDemoSpeech cdemo_telephone;
extern const CDemoSpeech cdemo_app;
