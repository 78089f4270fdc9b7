// Apple's framework on iOS, the stand-in elsewhere. An extension that imports this module gets CallKit's names too.
#if os(iOS) || APPLE_SURFACE
  @_exported public import CallKit
#else
  @_exported public import AppleStandIn
#endif
