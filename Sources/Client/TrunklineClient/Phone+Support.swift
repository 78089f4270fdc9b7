import AppProtocol

// What helps where a call does not go well.

extension Phone {
  /// Tries what a call needs: the gateway, the microphone, each TURN server, and last a call to the gateway itself, which measures both ways. It never
  /// throws. It takes some 7 s, and 35 s at most. A second one at the same time has the first one's result. No microphone is opened, nothing is
  /// played, and no call screen shows.
  public func preflight() async -> Preflight {
    guard let engine else {
      return Preflight(
        network: .init(isGood: false, error: .secondPhone), microphone: .init(isGood: false, error: .secondPhone), servers: [])
    }
    return await withCheckedContinuation { continuation in
      engine.enqueue { $0.preflight { continuation.resume(returning: $0) } }
    }
  }

  /// Each entry of the log from now on, from `minimum` up, in order, on a queue of the log's own: a slow sink holds up nothing but itself, and loses
  /// the oldest of more than 512 that wait. What has happened since the launch comes first. Nil: nothing is logged.
  ///
  /// Until this is called, entries from ``LogEntry/Level/info`` up go to the unified log on Apple's systems (subsystem `org.trunkline`).
  public func log(_ minimum: LogEntry.Level = .info, to sink: (@Sendable (LogEntry) -> Void)?) {
    engine?.logger.set(sink, minimum: minimum)
  }

  /// Waits until the sink of ``log(_:to:)`` has every entry so far: for a process that is about to exit. A sink must not call it.
  public func flushLog() { engine?.logger.flush() }

  /// Audio goes there from now on, in each call; nil: where the system has it go. When the route is unplugged another is used
  /// (``Event/audioRouteFellBack(from:to:)``), and it is used again when it is back.
  ///
  /// - Returns: false: it is not one of ``audioRoutes``, and nothing is changed.
  @discardableResult
  public func useAudioRoute(_ route: AudioRoute?) -> Bool {
    if let route, !audioRoutes.contains(where: { $0.id == route.id }) { return false }
    engine?.enqueue { $0.choose(route) }
    return true
  }
}
