#include "CTrunklineOpus.h"
