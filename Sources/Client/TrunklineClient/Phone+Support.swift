import TrunklineAppProtocol

// Support for calls that go wrong.

extension Phone {
  /// Tests the parts that a call needs: the gateway, the microphone, each TURN server, and last a call to the gateway itself,
  /// which measures both directions. It never throws. It takes about 7 s, and at most 35 s. A second test at the same time
  /// gets the first one's result. No microphone is opened, no audio is played, and no call screen is shown.
  public func preflight() async -> Preflight {
    guard let engine else {
      return Preflight(
        network: .init(isGood: false, error: .secondPhone), microphone: .init(isGood: false, error: .secondPhone), servers: [])
    }
    return await withCheckedContinuation { continuation in
      engine.enqueue { $0.preflight { continuation.resume(returning: $0) } }
    }
  }

  /// Sends each entry of the log from `minimum` up to a sink, in order, on the log's own queue: a slow sink delays only itself,
  /// and loses the oldest of more than 512 waiting entries. Entries since the launch are sent first. Nil: nothing is logged.
  ///
  /// Until this is called, entries from ``LogEntry/Level/info`` up go to the unified log on Apple's systems (subsystem `org.trunkline`).
  public func log(_ minimum: LogEntry.Level = .info, to sink: (@Sendable (LogEntry) -> Void)?) {
    engine?.logger.set(sink, minimum: minimum)
  }

  /// Waits until the sink of ``log(_:to:)`` has every entry so far: for a process that is about to exit. A sink must not call it.
  public func flushLog() { engine?.logger.flush() }

  /// Selects the audio route for all calls; nil: the system selects it. If the route is unplugged, another is used
  /// (``Event/audioRouteFellBack(from:to:)``) until it is available again.
  ///
  /// - Returns: false: the route is not one of ``audioRoutes``; nothing is changed.
  @discardableResult
  public func useAudioRoute(_ route: AudioRoute?) -> Bool {
    if let route, !audioRoutes.contains(where: { $0.id == route.id }) { return false }
    engine?.enqueue { $0.choose(route) }
    return true
  }
}
