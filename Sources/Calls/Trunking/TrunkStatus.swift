public import TrunklineSIPDialogs

/// A trunk as operators see it, for metrics and `/v1/trunks`. Times are milliseconds since 1970.
public struct TrunkStatus: Sendable, Codable, Equatable {
  /// Why a trunk is down; `removed`: it is no longer in the configuration, and its last calls run; `disabled`: by an operator.
  public enum Trouble: String, Sendable, Codable {
    /// Its servers are known, and no listener has their transport and address family, or no route leads to them.
    case noListener = "no listener reaches it"
    case removed, disabled, notLocated = "not located", notAnswering = "OPTIONS not answered", notRegistered = "not registered"
  }
  public struct Server: Sendable, Codable, Equatable {
    public var address: String
    /// False for a while after a request to it failed, and while the trunk's probes are not answered or no listener reaches it.
    public var up: Bool
  }
  public struct Registration: Sendable, Codable, Equatable {
    /// The last REGISTER was granted and its time is not over.
    public var registered: Bool
    /// When the last grant ends; nil if there was none.
    public var expires: Int64?
  }
  /// A request of ours that was refused, with the trunk's code, or that had no answer, with the failure that we found.
  public struct Refusal: Sendable, Codable, Equatable {
    public var method: String
    public var code: Int?
    public var failure: LocalFailure?
    public var at: Int64
  }
  /// Requests of ours that had no answer.
  public struct Unanswered: Sendable, Codable, Equatable {
    public var method: String
    public var failure: LocalFailure
    public var count: UInt64
  }

  public var trunk: String
  /// Calls can use it as far as is known: it has servers, its probes are answered, it is registered. What is not configured
  /// counts as good.
  public var up = true
  /// Why it is not up.
  public var why: Trouble?
  public var breakerOpen = false
  /// Calls now, both directions.
  public var calls = 0
  /// Calls at a time; nil: the trunk has no limit of its own.
  public var callsLimit: Int?
  /// Nil for a trunk that does not register.
  public var registration: Registration?
  public var servers: [Server] = []
  /// When the next OPTIONS goes out; nil without probes, and while one is under way.
  public var nextProbe: Int64?
  public var lastRefusal: Refusal?
  /// Since the trunk was configured; nil: none.
  public var unanswered: [Unanswered]?
  /// Why no server is known: name, reason and name servers.
  public var lookUp: String?

  public init(trunk: String) { self.trunk = trunk }

  /// Keeps the first trouble; `disabled`, which is an operator's, replaces it.
  public mutating func mark(_ trouble: Trouble) { (up, why) = (false, trouble == .disabled ? trouble : why ?? trouble) }
}
