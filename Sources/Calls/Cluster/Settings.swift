extension ClusterMachine {
  /// A node's identity and its time limits. Tests and `make faults` shorten these.
  public struct Settings: Sendable {
    public var incarnation: Incarnation
    /// As in `NodeLease`.
    public var url: String
    public var sip: String
    public var admin: String?
    public var version: String
    /// A hash of the parts of the configuration that nodes must share.
    public var configuration: String
    /// The previous incarnation, if this machine's journal knows it: its lease is ended at once. No other node can have it, since
    /// the journal is this node's alone.
    public var predecessor: Incarnation?
    public var lease = Limits.lease
    public var renewal = Limits.renewal
    /// At most `Limits.leadership`, which the shared store applies.
    public var leadership = Limits.leadership
    /// An INVITE, a `call.start` or a `hello` waits this long for the shared store.
    public var wait = Limits.wait
    /// Connected calls of a silent node are closed this long after its lease was first missed.
    public var lostAfter = Duration.seconds(30)
    /// Ringing calls of a silent node are moved this long after its lease was first missed.
    public var movesRinging = Limits.movesRinging
    /// A reaper that was cut off from the shared store closes nothing for this long.
    public var calm = Limits.calm
    /// Remembered state is written again at a random time within this, after the shared store was connected.
    public var restoreSpread = Limits.restoreSpread

    public init(_ incarnation: Incarnation, url: String, sip: String, version: String, configuration: String = "") {
      (self.incarnation, self.url, self.sip, self.version) = (incarnation, url, sip, version)
      self.configuration = configuration
    }
  }
}
