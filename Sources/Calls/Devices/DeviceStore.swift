/// Where devices are kept, asked for one user. Blocks; used by one thread at a time. `StoreContractTests` holds every implementation to
/// this.
public protocol DeviceStore: AnyObject, Sendable {
  /// A user's devices, the first seen first; bindings by time of registration. Empty for a user without one.
  func devices(of user: String) throws -> [Device]
  /// In order; all or none. What it returned from survives the death of the process.
  func apply(_ changes: [DeviceChange]) throws
}

/// One machine's store: all of it fits in memory, and is read before the first call.
public protocol LocalDeviceStore: DeviceStore {
  /// All devices of the next `users` users in the order of their ids, as UTF-8; nil begins. Empty: there are no more.
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
