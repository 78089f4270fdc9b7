#include "CTrunklineOpenSSL.h"
