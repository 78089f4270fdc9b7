import Glibc

/// How many descriptors the process may have, and who gets them.
public struct DescriptorLimit: Hashable, Sendable {
  /// Of the process, after `raise`.
  public let total: Int
  /// For the app port's connections.
  public let apps: Int
  /// For the sockets of calls.
  public let calls: Int

  /// Shares `total` out, so that neither can take the other's: a quarter, at most 512, for what is open anyhow (files, threads, SIP
  /// connections); of the rest calls get `wanted`, but half at most, and apps what is left.
  public init(total: Int, calls wanted: Int) {
    let own = min(512, total / 4)
    self.total = total
    calls = min(max(0, wanted), (total - own) / 2)
    apps = total - own - calls
  }

  /// Raises the soft limit to the hard one, at most a million, for the process. Once, at the start; what cannot be raised stays.
  /// `wanted`: descriptors that calls may need.
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
