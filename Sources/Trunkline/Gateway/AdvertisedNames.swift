import Bytes
import Configuration
import Logging
import MediaThreads
import Platform
import Synchronization

/// The thread `names`, where SDP says addresses that the configuration gives as names: looks them up again each minute, as a public
/// address may change under its name. Looking up may take its time, so no thread of calls does it.
final class AdvertisedNames: Sendable {
  private let interval: Duration
  private let find: @Sendable (String, IPAddress.Family) -> IPAddress?
  private let wake: EventDescriptor
  private let isOver = Mutex(false)
  private let thread = Mutex<NamedThread?>(nil)

  /// `interval` and `find`: what a test makes shorter, and the system's resolver.
  init(
    interval: Duration = .seconds(60), find: @escaping @Sendable (String, IPAddress.Family) -> IPAddress? = { lookUp($0, $1) }
  ) throws(SystemError) {
    (self.interval, self.find) = (interval, find)
    wake = try EventDescriptor()
  }

  /// `changed` is called on the thread. Without names there is no thread.
  func start(
    _ addresses: [MediaPlaneConfiguration.Address], logger: Logger,
    changed: @escaping @Sendable (_ address: IPAddress, _ bind: IPAddress) -> Void
  ) throws(SystemError) {
    let names = addresses.filter { $0.name != nil }
    guard !names.isEmpty else { return }
    let running = try NamedThread.start(name: "names", logger: logger) { [self] in run(names, logger, changed) }
    thread.withLock { $0 = running }
  }

  func stop() {
    isOver.withLock { $0 = true }
    wake.signal()
    thread.withLock { $0 }?.join()
  }

  private func run(
    _ names: [MediaPlaneConfiguration.Address], _ logger: Logger, _ changed: (IPAddress, IPAddress) -> Void
  ) {
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    var names = names
    while !isOver.withLock({ $0 }) {
      heartbeat.waits()
      if wake.wait(milliseconds: Int32(interval.nanoseconds / 1_000_000)) { wake.clear() }
      if isOver.withLock({ $0 }) { return }
      for index in names.indices {
        let (bind, name) = (names[index].bind, names[index].name ?? "")
        guard let found = find(name, bind.family) else {
          logger.warning(
            "an advertised name has no address now: the last one stays",
            metadata: ["name": "\(name)", "address": "\(names[index].advertise)"])
          continue
        }
        guard found != names[index].advertise else { continue }
        logger.notice(
          "an advertised name has another address: calls from now on are told",
          metadata: ["name": "\(name)", "address": "\(found)"])
        names[index].advertise = found
        changed(found, bind)
      }
      heartbeat.woke()
    }
  }
}
