import Glibc

/// The number of descriptors of the process, and its division among users.
public struct DescriptorLimit: Hashable, Sendable {
  /// The process's limit, after `raise`.
  public let total: Int
  /// For the app port's connections.
  public let apps: Int
  /// For the sockets of calls.
  public let calls: Int

  /// Divides `total`, so that neither side can use the other's: a quarter, at most 512, for everything else (files, threads, SIP
  /// connections); of the rest calls get `wanted`, but half at most, and apps the remainder.
  public init(total: Int, calls wanted: Int) {
    let own = min(512, total / 4)
    self.total = total
    calls = min(max(0, wanted), (total - own) / 2)
    apps = total - own - calls
  }

  /// Raises the process's soft limit to the hard one, at most a million. Called once, at the start; if the limit cannot be raised
  /// it stays. `wanted`: descriptors that calls may need.
  public static func raise(calls wanted: Int) -> DescriptorLimit {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return DescriptorLimit(total: 1_024, calls: wanted) }
    let most = min(limit.rlim_max, rlim_t(Limits.descriptors))
    if limit.rlim_cur < most {
      var raised = limit
      raised.rlim_cur = most
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return DescriptorLimit(total: Int(clamping: min(limit.rlim_cur, rlim_t(Limits.descriptors))), calls: wanted)
  }
}
