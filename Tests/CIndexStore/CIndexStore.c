#include "CIndexStore.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The part of indexstore/indexstore.h (LLVM, as Swift's toolchains have it) that is used here.
typedef struct {
  const char *data;
  size_t length;
} text;
enum { dependency_is_record = 2, role_is_reference = 1 << 2 };

static struct {
  void *(*store_create)(const char *path, void **error);
  void (*store_dispose)(void *store);
  bool (*store_units)(void *store, unsigned sorted, void *context, bool (*each)(void *context, text name));
  void *(*unit_create)(void *store, const char *name, void **error);
  void (*unit_dispose)(void *unit);
  bool (*unit_is_system)(void *unit);
  text (*unit_file)(void *unit);
  bool (*unit_dependencies)(void *unit, void *context, bool (*each)(void *context, void *dependency));
  int (*dependency_kind)(void *dependency);
  text (*dependency_name)(void *dependency);
  void *(*record_create)(void *store, const char *name, void **error);
  void (*record_dispose)(void *record);
  bool (*record_symbols)(void *record, bool nocache, void *context, bool (*each)(void *context, void *symbol));
  bool (*record_occurrences)(void *record, void *context, bool (*each)(void *context, void *occurrence));
  text (*symbol_usr)(void *symbol);
  void *(*occurrence_symbol)(void *occurrence);
  uint64_t (*occurrence_roles)(void *occurrence);
  void (*occurrence_line)(void *occurrence, unsigned *line, unsigned *column);
} api;

static int load(const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return 0;
#define FIND(field, name) \
  if (!(*(void **)&api.field = dlsym(handle, "indexstore_" name))) return 0
  FIND(store_create, "store_create");
  FIND(store_dispose, "store_dispose");
  FIND(store_units, "store_units_apply_f");
  FIND(unit_create, "unit_reader_create");
  FIND(unit_dispose, "unit_reader_dispose");
  FIND(unit_is_system, "unit_reader_is_system_unit");
  FIND(unit_file, "unit_reader_get_main_file");
  FIND(unit_dependencies, "unit_reader_dependencies_apply_f");
  FIND(dependency_kind, "unit_dependency_get_kind");
  FIND(dependency_name, "unit_dependency_get_name");
  FIND(record_create, "record_reader_create");
  FIND(record_dispose, "record_reader_dispose");
  FIND(record_symbols, "record_reader_symbols_apply_f");
  FIND(record_occurrences, "record_reader_occurrences_apply_f");
  FIND(symbol_usr, "symbol_get_usr");
  FIND(occurrence_symbol, "occurrence_get_symbol");
  FIND(occurrence_roles, "occurrence_get_roles");
  FIND(occurrence_line, "occurrence_get_line_col");
#undef FIND
  return 1;
}

struct walk {
  void *store;
  const struct index_reader *reader;
  bool is_wanted;
};

/// False ends the walk over a record's symbols: one of them is enough to look at its lines.
static bool each_symbol(void *context, void *symbol) {
  struct walk *walk = context;
  text usr = api.symbol_usr(symbol);
  walk->is_wanted = walk->reader->wants_symbol(walk->reader->context, usr.data, usr.length);
  return !walk->is_wanted;
}

static bool each_occurrence(void *context, void *occurrence) {
  struct walk *walk = context;
  if (!(api.occurrence_roles(occurrence) & role_is_reference)) return true;
  text usr = api.symbol_usr(api.occurrence_symbol(occurrence));
  if (!walk->reader->wants_symbol(walk->reader->context, usr.data, usr.length)) return true;
  unsigned line = 0, column = 0;
  api.occurrence_line(occurrence, &line, &column);
  walk->reader->found(walk->reader->context, usr.data, usr.length, line);
  return true;
}

static bool terminated(text name, char *room, size_t size) {
  if (name.length >= size) return false;
  memcpy(room, name.data, name.length);
  room[name.length] = 0;
  return true;
}

static bool each_dependency(void *context, void *dependency) {
  struct walk *walk = context;
  char name[1024];
  if (api.dependency_kind(dependency) != dependency_is_record) return true;
  if (!terminated(api.dependency_name(dependency), name, sizeof name)) return true;
  void *error = NULL, *record = api.record_create(walk->store, name, &error);
  if (!record) return true;
  walk->is_wanted = false;
  api.record_symbols(record, true, walk, each_symbol);
  if (walk->is_wanted) api.record_occurrences(record, walk, each_occurrence);
  api.record_dispose(record);
  return true;
}

static bool each_unit(void *context, text unit_name) {
  struct walk *walk = context;
  char name[1024];
  if (!terminated(unit_name, name, sizeof name)) return true;
  void *error = NULL, *unit = api.unit_create(walk->store, name, &error);
  if (!unit) return true;
  text file = api.unit_file(unit);
  if (!api.unit_is_system(unit) && walk->reader->wants_file(walk->reader->context, file.data, file.length))
    api.unit_dependencies(unit, walk, each_dependency);
  api.unit_dispose(unit);
  return true;
}

const char *index_read(const char *library, const char *store, struct index_reader reader) {
  if (!load(library)) return "libIndexStore.so cannot be loaded";
  void *error = NULL;
  struct walk walk = {api.store_create(store, &error), &reader, false};
  if (!walk.store) return "there is no index store";
  api.store_units(walk.store, 0, &walk, each_unit);
  api.store_dispose(walk.store);
  return NULL;
}
