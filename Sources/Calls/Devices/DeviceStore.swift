/// A store of devices, queried by user. Blocks; used by one thread at a time. `StoreContractTests` checks every implementation
/// against this.
public protocol DeviceStore: AnyObject, Sendable {
  /// A user's devices, the first seen first; bindings by time of registration. Empty for a user without devices.
  func devices(of user: String) throws -> [Device]
  /// In order; all or none. Once it has returned, the changes survive the death of the process.
  func apply(_ changes: [DeviceChange]) throws
}

/// The store of a single machine: its whole content fits in memory, and is read before the first call.
public protocol LocalDeviceStore: DeviceStore {
  /// All devices of the next `users` users in the order of their ids, as UTF-8; nil starts from the first. Empty: there are no
  /// more.
  func page(after user: String?, users: Int) throws -> [Device]
}

extension LocalDeviceStore {
  /// Every device, the first seen first.
  public func all() throws -> [Device] {
    var out: [Device] = []
    var last: String?
    while true {
      let page = try page(after: last, users: Limits.usersOfPage)
      guard let end = page.last?.key.user else { break }
      out += page
      last = end
    }
    return out.sorted { ($0.firstSeen, $0.key.user, $0.key.device) < ($1.firstSeen, $1.key.user, $1.key.device) }
  }
}
