public import Devices

/// Where the device registry is kept. Blocks; used by one thread at a time. `StoreContractTests` holds every implementation to this.
public protocol DeviceStore: AnyObject, Sendable {
  /// Every device, the first seen first; bindings by time of registration.
  func devices() throws -> [Device]
  /// In order; all or none. What it returned from survives the death of the process.
  func apply(_ changes: [DeviceChange]) throws
}
