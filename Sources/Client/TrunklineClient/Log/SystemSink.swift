extension Phone {
  /// Where entries go before the app says: on Apple's systems the unified log, elsewhere nowhere, and those of the launch wait.
  nonisolated static var systemLog: PhoneLogger.Sink? {
    #if canImport(Darwin) || APPLE_SURFACE
      { SystemLog.write($0) }
    #else
      nil
    #endif
  }
}
