#pragma once
#include <stddef.h>

// The table that Scripts/numbers writes: layout in Sources/Wire/PhoneNumbers/PlanTable.swift.
extern const unsigned char *const cphone_numbers;
extern const size_t cphone_numbers_length;
