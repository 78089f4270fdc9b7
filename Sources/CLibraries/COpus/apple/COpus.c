#include "COpus.h"
