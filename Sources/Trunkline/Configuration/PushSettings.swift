public import Platform
public import PushPolicy

extension Settings {
  /// How apps are woken; without a service's provider nothing is sent to its devices.
  public struct Push: Sendable {
    /// Where a woken app connects: put into every push.
    public var gateway: String
    /// One for each service that is configured, with its keys.
    public var providers = PushProviders()
    /// What a `device.put` without topic or env means.
    public var topic: String?
    public var environment = PushTarget.Environment.production
    /// The VoIP certificate that APNs is shown, and PEM of the authorities trusted instead of the system's: for a stand-in.
    public var tls = TLSFiles()
    public init(gateway: String) { self.gateway = gateway }
  }
}
