#if canImport(Darwin) || APPLE_SURFACE
  import Dispatch
  import Network
  import Synchronization

  /// NWPathMonitor: reports Wi-Fi, cellular, and a change from one network to another.
  public final class NetworkPaths: PathMonitor, @unchecked Sendable {
    // Unchecked: not every SDK marks the monitor Sendable. It is started and cancelled once, from any thread.
    private let monitor = NWPathMonitor()
    private let known = Mutex<NWPath?>(nil)

    public init() {}

    /// Call it once: a stopped monitor does not start again.
    public func start(_ changed: @escaping @Sendable () -> Void) {
      monitor.pathUpdateHandler = { [weak self] path in
        // the first update contains the present path, and the same path may be reported again
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
