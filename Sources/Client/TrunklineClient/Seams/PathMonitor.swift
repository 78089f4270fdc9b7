/// Says when the network path changes: NWPathMonitor on Apple's systems, addresses that come and go on Linux.
public protocol PathMonitor: Sendable {
  func start(_ changed: @escaping @Sendable () -> Void)
  func stop()
}
