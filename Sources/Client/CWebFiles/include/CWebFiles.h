// The web phone's files, with the path each is served at. Swift array literals of this size take half a minute to compile.
#pragma once
#include <stddef.h>

typedef struct {
  const char *path;
  const char *content_type;
  const unsigned char *octets;
  size_t length;
} CWebFile;

extern const CWebFile *const cweb_files;
extern const size_t cweb_file_count;
