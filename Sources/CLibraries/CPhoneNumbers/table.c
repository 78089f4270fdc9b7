#include "CPhoneNumbers.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

// A Swift array literal of this size takes minutes to compile.
static const unsigned char table[] = {
#embed "numbers.bin"
};

const unsigned char *const cphone_numbers = table;
const size_t cphone_numbers_length = sizeof table;
