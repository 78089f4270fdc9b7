extension Phone {
  /// The sink of entries until the app sets one: the unified log on Apple's systems; nil elsewhere, where entries of the
  /// launch wait.
  nonisolated static var systemLog: PhoneLogger.Sink? {
    #if canImport(Darwin) || APPLE_SURFACE
      { SystemLog.write($0) }
    #else
      nil
    #endif
  }
}
