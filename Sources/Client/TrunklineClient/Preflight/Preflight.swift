import Foundation

/// What a call needs, tried before there is one: see ``Phone/preflight()``.
public struct Preflight: Sendable, Hashable {
  /// The gateway, over the phone's session.
  public struct Network: Sendable, Hashable {
    /// It answers.
    public var isGood: Bool
    /// The best of three; nil: it did not answer.
    public var roundTripMilliseconds: Double?
    /// Why not.
    public var error: PhoneError?
  }

  /// The microphone, as far as it is known without a call: none is opened.
  public struct Microphone: Sendable, Hashable {
    /// It is granted, and there is one.
    public var isGood: Bool
    /// Where a call's audio would go now; nil: the phone was given no `AudioRoutes`.
    public var route: AudioRoute?
    /// Why not.
    public var error: PhoneError?
  }

  /// One TURN server of the gateway's list: an allocation, which is given back.
  public struct Server: Sendable, Hashable {
    /// `turn:host:port?transport=udp`, `turns:host:port?transport=tcp`.
    public var url: String
    /// It has given an address.
    public var isGood: Bool
    /// From the connection attempt to the address.
    public var milliseconds: Double?
    /// What it said, or why it was not reached; nil: it is good.
    public var failure: String?
  }

  /// A call to the gateway itself, which sends back what it hears.
  public struct TestCall: Sendable, Hashable {
    /// It was connected, and sound came back.
    public var isGood: Bool
    /// Mean opinion score, 1 to 4.5, of what came here, by the E-model (ITU-T G.107); nil: nothing came.
    public var score: Double?
    /// The same of what came to the gateway, by the gateway.
    public var gatewayScore: Double?
    /// Why there is none.
    public var error: PhoneError?
  }

  /// The gateway.
  public var network: Network
  /// The microphone.
  public var microphone: Microphone
  /// TURN servers matter only in networks that let no UDP to the gateway through.
  public var servers: [Server]
  /// Nil: the gateway takes no test calls, or the phone was not online.
  public var call: TestCall?

  /// Gateway and microphone are there.
  public var isReady: Bool { network.isGood && microphone.isGood }
}
