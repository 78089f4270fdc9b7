// Apple's framework where it is, the stand-in elsewhere. An extension that imports this module has CallKit's names too.
#if os(iOS) || APPLE_SURFACE
  @_exported public import CallKit
#else
  @_exported public import AppleStandIn
#endif
