/// The keys for other nodes and edges beside this gateway.
extension ConfigurationKeys {
  /// The path of a key's former name, and the key's name today.
  static let renamed = ["cluster.engine": "shared_store"]

  static let cluster: [ConfigurationSection] = [
    .init(
      "cluster", isAppliedBySIGHUP: false,
      "With `shared_store` this gateway is one of several nodes: `node`, `url` and `key_file` are required then. Without it the section holds `edges` alone.",
      [
        .init(
          "node", .text("name, or `env:NAME`"), .none("required with `shared_store`"),
          "This node's name: unique, the same after a restart; letters, digits, `-`, `_` and `.`, at most 63. `env:HOSTNAME` reads it from the environment."
        ),
        .init(
          "url", .text("wss: URL, or `env:NAME`"), .none("required with `shared_store`"),
          "Where a device reaches this very node, ending in `/v1/connect`: `wss://n1.phone.example.com/v1/connect`, or `wss://phone.example.com/n/n1/v1/connect` behind a path of the balancer. Pushes lead there."
        ),
        .init(
          "admin", .text("http: or https: URL, or `env:NAME`"), .none("programs get the node's name alone"),
          "Where a program reaches this very node's admin API, without a path: `http://10.0.0.5:7060`. Other nodes answer requests for its calls with a 307 to there."
        ),
        .init(
          "shared_store", .mapping, .none("this gateway is not in a cluster"), "Redis or Valkey, which all nodes share."),
        .init(
          "key_file", .secretFile("at least 32 random bytes"), .none("required with `shared_store`"),
          "The same file at all nodes, so that each node accepts the sessions of the others. `openssl rand -hex 32` makes one."),
        .init(
          "lost_after", .duration(.seconds(2) ... .seconds(3_600)), .value("30s"),
          "Connected calls of a node that answers nothing are closed after this; ringing ones move on after 4 s."),
        .init(
          "lease", .duration(.seconds(2) ... .seconds(60)), .value("6s"),
          "A node that has not renewed its lease for so long gets no new calls. The same at all nodes."),
        .init(
          "prefix", .text("letters, digits, `-`, `_`"), .value("tl"),
          "Prefix of every key and channel, if several clusters share one Redis."),
        .init("edges", .mapping, .none("carriers and apps reach the gateway itself"), "Proxies of yours before the gateway."),
      ]),
    .init(
      "cluster.shared_store", isAppliedBySIGHUP: false, "One of `redis`, `sentinels` and `cluster`.",
      [
        .init("redis", .text("host:port"), .none("`sentinels` or `cluster`"), "A primary without Sentinels."),
        .init("sentinels", .list(.text("host:port"), limit: 16), "Sentinels, which return the primary's address; needs `name`."),
        .init("name", .text("name"), .none("no Sentinels"), "What Sentinel calls the primary."),
        .init("cluster", .list(.text("host:port"), limit: 64), "Some nodes of a Redis Cluster, which return the others."),
        .init("user", .text("name"), .none("the default user"), "An ACL user."),
        .init("password_file", .secretFile("the password"), .none("no password"), "Its password, or that of the default user."),
        .init(
          "tls", .or(.mapping, .text("`off`")), .none("required unless Redis is on loopback"),
          "How the certificate of Redis is checked. `off` only in a network of your own: an eavesdropper learns numbers and push tokens."
        ),
      ]),
    .init(
      "cluster.shared_store.tls", isAppliedBySIGHUP: false, "",
      [
        .init("ca", .file("PEM certificates"), .none("the system's"), "The CAs of the certificate of Redis."),
        .init("cert", .file("PEM certificate chain"), .none("none"), "This node's client certificate for Redis."),
        .init("key", .secretFile("PEM private key"), .none("none"), "Its private key."),
      ]),
    .init(
      "cluster.edges", isAppliedBySIGHUP: true,
      "An edge names the trunk of each call in the header field `X-Trunkline-Trunk`; from anybody else it is ignored.",
      [
        .init(
          "peers", .list(.text("address or network"), limit: Limits.edges),
          "Where SIP of the edges comes from. An INVITE of theirs that names no trunk gets 403. No carrier or app may be in these networks."
        ),
        .init(
          "sip", .text("SIP URI"), .none("requests go to the trunks"),
          "Where requests to trunks go first, with a Route: `sip:192.0.2.9:5060;transport=tcp`. Its address must be in `peers`."),
        .init(
          "http", .list(.text("address or network"), limit: Limits.edges), waitsForRestart: true,
          "Edges before the app port: the same as further `listen.app.proxies`."),
      ]),
  ]
}
