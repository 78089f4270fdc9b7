#if os(Linux) && !APPLE_SURFACE
  import Glibc

  /// How long sent data may stay unacknowledged before a connection counts as lost; the kernel's own limit is 15 minutes.
  private let unacknowledgedMilliseconds: Int32 = 6_000
  private let keepAliveIdleSeconds: Int32 = 15
  private let keepAliveIntervalSeconds: Int32 = 5

  /// From now on the kernel ends the connection with a time-out when sent data, or its probe of an idle connection, is not
  /// acknowledged for 6 s (RFC 5482, RFC 9293 §3.8.4): the network has changed, or a firewall has forgotten the connection. The
  /// owner then makes a new one.
  func limitPatience(ofSocket socket: Int32) {
    func set(level: Int32, option: Int32, value: Int32) {
      var value = value
      setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    set(level: SOL_SOCKET, option: SO_KEEPALIVE, value: 1)
    set(level: Int32(IPPROTO_TCP), option: TCP_KEEPIDLE, value: keepAliveIdleSeconds)
    set(level: Int32(IPPROTO_TCP), option: TCP_KEEPINTVL, value: keepAliveIntervalSeconds)
    set(level: Int32(IPPROTO_TCP), option: TCP_USER_TIMEOUT, value: unacknowledgedMilliseconds)
  }
#endif
