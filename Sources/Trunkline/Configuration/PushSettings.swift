public import PushPolicy
public import TrunklinePlatform

extension Settings {
  /// How apps are woken; nothing is sent to the devices of a service without a provider.
  public struct Push: Sendable {
    /// The URL where a woken app connects: part of every push.
    public var gateway: String
    /// One for each service that is configured, with its keys.
    public var providers = PushProviders()
    /// Defaults for a `device.put` without topic or env.
    public var topic: String?
    public var environment = PushTarget.Environment.production
    /// The VoIP certificate that is presented to APNs, and PEM of the authorities trusted instead of the system's: for a
    /// stand-in.
    public var tls = TLSFiles()
    public init(gateway: String) { self.gateway = gateway }
  }
}
