// CTrunklineOpus on Apple's systems: a target of C over swift-opus' Copus, where on Linux the system's library is.
#include "../../shim.h"
