// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Server transactions of all trunks; a new INVITE above it gets 503 without state.
  static let serverTransactions = 20_000
  /// As many again for requests inside dialogs: a flood of refused INVITEs must not keep a call from its BYE.
  static let serverTransactionsOfCalls = 20_000
  /// Client transactions of all trunks; a new outbound leg above it fails with 503.
  static let clientTransactions = 20_000
  /// Legs, inbound and outbound.
  static let legs = 5_000
  /// Different 2xx of one forked INVITE that are acknowledged and ended; further ones are ignored.
  static let forks = 8
  /// Servers of one trunk that one call tries.
  static let targets = 16
  /// Routes copied from Record-Route; with more, no dialog is made.
  static let routes = 16
  /// Longest Contact URI that becomes the target of our requests.
  static let targetBytes = 512
  /// Requests over this many bytes use a congestion-controlled transport (RFC 3261 §18.1.1).
  static let datagramRequestBytes = 1_300
  /// How long such requests go over UDP at once to a server that refused a connection for one, and how many such servers are
  /// remembered.
  static let datagramOnlyTime = Duration.seconds(600)
  static let datagramOnlyServers = 1_024
  /// 401s a second to sources outside every trunk's list: for each source, and for all together. Above that nothing is sent.
  static let challengesPerSource = 10
  static let challengesPerSecond = 200
  /// Sources whose rate is limited at a time.
  static let challengedSources = 4_096
  /// Nonces that are remembered because they were used with the right password.
  static let usedNonces = 8_192
  /// Challenges in one 401.
  static let realms = 4
  /// How long a nonce may be used.
  static let nonceSeconds: Int64 = 300
  /// The same for nonces that all nodes of a cluster accept: one that was used here may be used at each other node for this long.
  static let sharedNonceSeconds: Int64 = 60
  /// How far a node's clock may be behind another's: its copy of the shared store's time is a round trip old, and without the
  /// shared store it uses its own clock.
  static let clockDifferenceSeconds: Int64 = 15
  /// Realms for which one request of ours is authorized: proxies on the way and the server.
  static let answeredRealms = 4
  /// Service-Route entries of a registrar that are followed, and their length together; a longer route is not followed.
  static let serviceRoutes = 8
  static let serviceRouteBytes = 2_048
  /// Characters of a challenge's realm in the log.
  static let shownRealmCharacters = 64
  /// Requests outside dialogs that wait for their outcome.
  static let standaloneRequests = 4_096
  /// Bytes of the longest fixed header field of a trunk, name included.
  static let extraFieldBytes = 512
  /// Extra headers of one outbound INVITE.
  static let extraHeaders = 32
  /// The smallest session interval of RFC 4028 §4, in seconds; the smallest that a trunk's rules may set instead, for a lab;
  /// and the largest that we accept from a peer's Min-SE.
  static let sessionSeconds = 90
  static let labSessionSeconds = 4
  static let sessionSecondsMaximum = 86_400
  /// Provisional responses that wait behind one without PRACK; later ones are omitted.
  static let waitingProvisionals = 8
  /// How often an offer inside a dialog is retried after 491, 422 or 500.
  static let offerTries = 6
  /// The longest Retry-After of a re-INVITE's 500 that is waited out.
  static let offerRetrySeconds = 10
  /// 3xx responses that one call follows, and contacts that are read from each.
  static let redirects = 3
  static let redirectContacts = 8
  /// How often an INVITE is sent again because of 422.
  static let sessionRaises = 2
  /// Legs of a dead process that are closed in one step of the control thread; and how far their CSeq is set ahead of the
  /// journal's.
  static let orphansAtOnce = 20
  static let orphanSequenceGap: UInt32 = 1_000
  /// The highest CSeq that such a leg may have: below 2^31 (RFC 3261 §8.1.1.5), with room for the requests that end it.
  static let orphanSequence: UInt32 = 0x7fff_0000
  /// Longest body of a sipfrag or of INFO digits that is read.
  static let smallBodyBytes = 2_048
  /// Longest Refer-To that is sent or accepted.
  static let referBytes = 1_024
}
