#pragma once
#include <stddef.h>

/// What `index_read` asks for, and reports. Strings are not terminated and last for the call only.
struct index_reader {
  void *context;
  /// 0: this source file is passed over.
  int (*wants_file)(void *context, const char *file, size_t length);
  /// 0: references to this symbol are passed over.
  int (*wants_symbol)(void *context, const char *usr, size_t length);
  /// A reference in the file that was asked for last.
  void (*found)(void *context, const char *usr, size_t length, unsigned line);
};

/// Reads every reference of an index store, as `swiftc -index-store-path` writes it; `library` is the toolchain's libIndexStore.so. Null, or why
/// not. One thread.
const char *index_read(const char *library, const char *store, struct index_reader reader);
