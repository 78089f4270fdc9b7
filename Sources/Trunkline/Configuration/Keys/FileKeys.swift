import TrunklineBytes

/// Every key of the configuration file.
enum ConfigurationKeys {
  /// The sections of the reference: in the order of `file`, each before those in it.
  static let sections = ConfigurationSection.all(of: file)

  /// The file itself.
  static let file = KeyTable<Settings>(.init(), .atSIGHUP, about: "The sections.", network, calls, services, process)

  private static let network: [Key<Settings>] = [
    .section("listen", listen, \.listen, "The addresses of the SIP, app and admin listeners."),
    .section("admin", admin, \.admin, "What programs may do at the admin endpoint."),
    .section(
      "branding", branding, \.branding, default: .none("the pages are Trunkline's"),
      "Name, colour and logo of the web phone and the status page."),
    .list(
      "local_networks", \.localNetworks, .text("network, or `auto`"), limit: 100, default: .value("[ auto ]"),
      expected: "auto, or a network such as 10.0.0.0/8",
      "Peers in these networks get our own addresses, not those of `advertise`. `auto`: the networks of our interfaces."
    ) { $0 == "auto" ? .interfaces : IPNetwork($0).map { .network($0) } }.atRestart,
    .section("dns", dns, \.dns, "The name servers that the names of trunks are looked up with."),
    .section("media", media, \.self, "Addresses, ports and threads of RTP."),
    .section("auth", auth, \.auth, default: .required(), "How apps log in."),
  ]

  private static let calls: [Key<Settings>] = [
    trunks,
    users,
    .section("routes", routes, \.self, "Which calls go where."),
    .optionalSection("push", push, \.push, none: "no pushes", "How apps that are not connected are woken."),
    .init(
      "cluster", .mapping, default: .none("one machine alone"), "Other nodes and proxies of this installation.", inner: cluster
    ) { field, out in
      if field.isWritten { out.cluster = cluster.value(field)?.settings }
    },
  ]

  private static let services: [Key<Settings>] = [
    .optionalSection(
      "verifier", verifier, \.verifier, none: "identities are not verified",
      "The service that verifies the Identity header field of callers (STIR/SHAKEN). The URL alone, or a mapping."),
    .optionalSection("turn", turn, \.turn, none: "clients get none", "TURN servers for apps behind firewalls that block UDP."),
    .optionalSection(
      "events", events, \.events, none: "no events are kept",
      "What happens to calls, devices and trunks, for your backend. `{}`: kept for `GET /v1/events` alone."),
    .optionalSection("recording", recording, \.recording, none: "nothing is recorded", "Calls as sound files."),
  ]

  private static let process: [Key<Settings>] = [
    .section("history", history, \.history, "How long calls stay in the users' histories."),
    .section("timers", timers, \.self, "Time limits of calls and sessions."),
    .section("limits", limits, \.self, "How much load a gateway accepts before it refuses calls."),
    .section("store", store, \.self, "Where devices and the journal of started calls are kept."),
    .section("records", records, \.self, "Where the record of each call is written."),
    .section("log", log, \.log, "The log on standard error."),
    .optionalSection(
      "hep", hep, \.hep, none: "nothing is captured",
      "A capture server, such as Homer, that gets all SIP as HEP3 over UDP, secrets masked. The address alone, or a mapping."
    ).atRestart,
  ]
}
