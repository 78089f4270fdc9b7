import AppSessions
public import Devices
import Synchronization

/// Where the device registry is kept. Blocks; used by one thread at a time. `StoreContractTests` holds every implementation to this.
public protocol DeviceStore: AnyObject, Sendable {
  /// Every device, the first seen first; bindings by time of registration.
  func devices() throws -> [Device]
  /// In order; all or none. What it returned from survives the death of the process.
  func apply(_ changes: [DeviceChange]) throws
}

/// Devices that are forgotten with the process: for tests and for gateways that keep no state.
public final class MemoryDevices: DeviceStore {
  private let table = Mutex<[DeviceKey: Device]>([:])
  public init() {}

  public func devices() -> [Device] {
    table.withLock {
      $0.values.sorted { ($0.firstSeen, $0.key.user, $0.key.device) < ($1.firstSeen, $1.key.user, $1.key.device) }
    }
  }

  public func apply(_ changes: [DeviceChange]) {
    table.withLock { table in
      for change in changes {
        switch change {
        case .stored(let device): table[device.key] = device
        case .removed(let key): table[key] = nil
        }
      }
    }
  }
}
