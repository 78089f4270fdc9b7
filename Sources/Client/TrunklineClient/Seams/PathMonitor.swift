/// Says when the network path changes: NWPathMonitor on Apple's systems, addresses that come and go on Linux.
public protocol PathMonitor: Sendable {
  /// Calls `changed` for each change from now on, from any thread.
  func start(_ changed: @escaping @Sendable () -> Void)
  /// No more calls.
  func stop()
}
