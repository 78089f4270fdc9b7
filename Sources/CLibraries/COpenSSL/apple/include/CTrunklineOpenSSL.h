// CTrunklineOpenSSL on Apple's systems: a target of C over OpenSSL-Package's framework, where on Linux the system's library is.
#include "../../shim.h"
