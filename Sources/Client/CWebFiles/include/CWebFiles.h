// The files of the web phone (the app port) and of the status page (the admin port), with the path each is served at. Swift array literals of this size take half a minute to compile.
#pragma once
#include <stddef.h>

typedef struct {
  const char *path;
  const char *content_type;
  const unsigned char *octets;
  size_t length;
} CWebFile;

extern const CWebFile *const cweb_phone_files;
extern const size_t cweb_phone_file_count;
extern const CWebFile *const cweb_status_files;
extern const size_t cweb_status_file_count;
