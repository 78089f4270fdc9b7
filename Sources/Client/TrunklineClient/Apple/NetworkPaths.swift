#if canImport(Darwin) || APPLE_SURFACE
  import Dispatch
  import Network
  import Synchronization

  /// NWPathMonitor: Wi-Fi, cellular, a network in place of another.
  public final class NetworkPaths: PathMonitor, @unchecked Sendable {
    // Unchecked: not every SDK says that the monitor is Sendable. It is started and cancelled once, from any thread.
    private let monitor = NWPathMonitor()
    private let known = Mutex<NWPath?>(nil)

    public init() {}

    /// Once: a monitor that was stopped does not start again.
    public func start(_ changed: @escaping @Sendable () -> Void) {
      monitor.pathUpdateHandler = { [weak self] path in
        // the first update says how things are, and the same path is told again
        let old = self?.known.withLock { known in
          defer { known = path }
          return known
        }
        if let old, old != path { changed() }
      }
      monitor.start(queue: DispatchQueue(label: "trunkline.paths"))
    }

    public func stop() { monitor.cancel() }
  }
#endif
