extension ClusterMachine {
  /// What a node is, and its clocks. Tests and `make faults` shorten the clocks.
  public struct Settings: Sendable {
    public var incarnation: Incarnation
    /// As in `NodeLease`.
    public var url: String
    public var sip: String
    public var admin: String?
    public var version: String
    /// A hash of the parts of the configuration that nodes must share.
    public var configuration: String
    /// The life before this one, if the journal of this machine knows it: its lease is ended at once. Nobody else may have it: the journal is
    /// ours alone.
    public var predecessor: Incarnation?
    public var lease = Limits.lease
    public var renewal = Limits.renewal
    /// Not above `Limits.leadership`, which is the shared store's.
    public var leadership = Limits.leadership
    /// An INVITE, a `call.start` or a `hello` waits so long for the shared store.
    public var wait = Limits.wait
    /// Connected calls of a node that is silent are closed so long after its lease was missed first.
    public var lostAfter = Duration.seconds(30)
    /// Its ringing calls are moved so long after.
    public var movesRinging = Limits.movesRinging
    /// A reaper that was cut off from the shared store acts on nothing so long after.
    public var calm = Limits.calm
    /// What a node remembers is put back at a random time within this, after the shared store has come.
    public var restoreSpread = Limits.restoreSpread

    public init(_ incarnation: Incarnation, url: String, sip: String, version: String, configuration: String = "") {
      (self.incarnation, self.url, self.sip, self.version) = (incarnation, url, sip, version)
      self.configuration = configuration
    }
  }
}
