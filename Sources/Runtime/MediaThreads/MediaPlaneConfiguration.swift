import TrunklineBytes

/// Where media is received and sent; from `media:` of the configuration.
public struct MediaPlaneConfiguration: Sendable {
  /// One address of the machine: sockets bind to `bind`, SDP and candidates contain `advertise`.
  public struct Address: Sendable, Hashable {
    public var bind: IPAddress
    public var advertise: IPAddress
    public init(bind: IPAddress, advertise: IPAddress? = nil) { (self.bind, self.advertise) = (bind, advertise ?? bind) }
  }
  /// The addresses at the start; none while the machine has none (`MediaPlane.use`). App legs offer all of them; a trunk leg uses
  /// the one on the route to its peer, else the first of its family.
  public var addresses: [Address]
  /// Trunks in these networks get `bind`, whatever `advertise` is.
  public var localNetworks = LocalNetworks()
  public var threads: Int
  /// UDP port of app legs: thread k has `appPort` + k.
  public var appPort: UInt16
  /// RTP on the even ports, RTCP on the next odd one.
  public var trunkPorts: ClosedRange<UInt16>
  public var opusComplexity: Int
  /// Media threads run before all other threads of the machine where that is permitted (SCHED_FIFO). They never use more of their
  /// core than `loadLimit`, so others are not starved.
  public var isRealtime = true
  /// Share of a core that one media thread may fill with calls, 0…1; beyond it calls are refused (`LoadGovernor`).
  public var loadLimit: Double = Limits.loadLimit
  /// The assumed cost of a call until calls have been measured, as a share of a core; nil: an encoder is timed at the start.
  public var assumedCallCost: Double?

  public init(
    addresses: [Address], threads: Int = 2, appPort: UInt16 = 40_000, trunkPorts: ClosedRange<UInt16> = 20_000...21_999,
    opusComplexity: Int = 5
  ) {
    (self.addresses, self.threads, self.appPort) = (addresses, threads, appPort)
    (self.trunkPorts, self.opusComplexity) = (trunkPorts, opusComplexity)
  }
}

/// Why no media could be reserved for a call; the call is refused with 503 `overload`.
public enum MediaReservationError: Error, Sendable, Equatable, CustomStringConvertible {
  /// Every pair of `media.trunk_ports` is in use.
  case portsExhausted
  /// The user's media thread has its most calls, or does not keep up with its commands.
  case threadFull
  /// One more call would interrupt the audio of existing ones: their threads are at their load limit.
  case overloaded
  /// The machine has no address for media now.
  case noAddress
  /// A socket could not be made for another reason; the text is the system's.
  case socket(String)
  case stopped

  public var description: String {
    switch self {
    case .portsExhausted: "every port of media.trunk_ports is in use: widen the range"
    case .threadFull: "the media thread of this user is full: raise media.threads"
    case .overloaded: "the media threads have as many calls as they can carry"
    case .noAddress: "this machine has no usable address for media now: see /readyz"
    case .socket(let text): text
    case .stopped: "the media plane has stopped"
    }
  }
}
