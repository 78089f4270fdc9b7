// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Server transactions of all trunks; a new INVITE beyond gets 503 without state.
  static let serverTransactions = 20_000
  /// As many more for requests inside dialogs: a flood of refused INVITEs must not keep a call from its BYE.
  static let serverTransactionsOfCalls = 20_000
  /// Client transactions of all trunks; a new outbound leg beyond fails with 503.
  static let clientTransactions = 20_000
  /// Legs, inbound and outbound.
  static let legs = 5_000
  /// Different 2xx of one forked INVITE that are acknowledged and ended; further ones are ignored.
  static let forks = 8
  /// Servers of one trunk that one call tries.
  static let targets = 16
  /// Routes taken over from Record-Route; a dialog with more is not made.
  static let routes = 16
  /// Longest Contact URI that becomes the target of our requests.
  static let targetBytes = 512
  /// Requests over this many bytes go by a congestion-controlled transport (RFC 3261 §18.1.1).
  static let datagramRequestBytes = 1_300
  /// How long a server that took no connection for one is sent such requests over UDP at once, and how many servers are remembered.
  static let datagramOnlyTime = Duration.seconds(600)
  static let datagramOnlyServers = 1_024
  /// 401s to sources that no list names: a second, each and all together. Beyond that there is silence.
  static let challengesPerSource = 10
  static let challengesPerSecond = 200
  /// Sources whose rate is watched at a time.
  static let challengedSources = 4_096
  /// Nonces that were used with the right password, and how long one may be used.
  static let usedNonces = 8_192
  /// Challenges in one 401.
  static let realms = 4
  static let nonceSeconds: Int64 = 300
  /// The same of nonces that all nodes of a cluster take: one that was used here may be used at each other node for so long.
  static let sharedNonceSeconds: Int64 = 60
  /// So much may a node's clock be behind another's: what it knows of the shared store's is a round trip old, and without shared store it has its own.
  static let clockDifferenceSeconds: Int64 = 15
  /// Realms that one request of ours is authorized for: proxies on the way and the server.
  static let answeredRealms = 4
  /// Service-Route entries of a registrar that are taken, and their length together; one with more is not followed.
  static let serviceRoutes = 8
  static let serviceRouteBytes = 2_048
  /// Of a realm that a challenge names, in the log.
  static let shownRealmCharacters = 64
  /// Requests outside dialogs that wait for their outcome.
  static let standaloneRequests = 4_096
  /// The longest fixed field of a trunk, with its name.
  static let extraFieldBytes = 512
  /// Extra headers of one outbound INVITE.
  static let extraHeaders = 32
  /// The smallest session interval of RFC 4028 §4, in seconds; the smallest that a trunk's rules may have instead, for a lab; and the
  /// largest that we go up to for a peer's Min-SE.
  static let sessionSeconds = 90
  static let labSessionSeconds = 4
  static let sessionSecondsMaximum = 86_400
  /// Provisional responses that wait behind one without PRACK; later ones are left out.
  static let waitingProvisionals = 8
  /// How often an offer inside a dialog is tried again after 491, 422 or 500.
  static let offerTries = 6
  /// The longest Retry-After of a re-INVITE's 500 that is waited out.
  static let offerRetrySeconds = 10
  /// 3xx responses that one call follows, and contacts that are looked at in each.
  static let redirects = 3
  static let redirectContacts = 8
  /// Times that an INVITE is sent again because of 422.
  static let sessionRaises = 2
  /// Legs of a process that died that are closed in one piece of control's time; and what their CSeq is ahead of the journal's.
  static let orphansAtOnce = 20
  static let orphanSequenceGap: UInt32 = 1_000
  /// The highest CSeq that such a leg may have had: below 2^31 (RFC 3261 §8.1.1.5), with room for what ends it.
  static let orphanSequence: UInt32 = 0x7fff_0000
  /// Longest body of a sipfrag or of INFO digits that is read.
  static let smallBodyBytes = 2_048
  /// Longest Refer-To that is sent or taken.
  static let referBytes = 1_024
}
