extension Settings {
  /// What `trunkline config example` prints, and what `serve` without a file starts with. It is valid as it stands, given a `jwt.key`.
  public static let example = """
    # Trunkline configuration. Relative paths start at this file's directory; durations are 500ms, 45s, 1m or 4h.
    # What is commented out shows a default or an option; `trunkline serve --check --config FILE` names every mistake.

    listen:
      sip: { udp: 127.0.0.1:5060, tcp: 127.0.0.1:5060 }   # either may be left out
      app:
        address: 127.0.0.1:8080
        # tls: { cert: app.pem, key: app.key }             # required unless the address is loopback
      admin: 127.0.0.1:9090                                # /healthz /readyz /metrics and the calls API
      # admin: { address: 192.0.2.1:9090, token_file: admin.token }   # token_file is required off loopback

    media:
      addresses: [ auto ]            # auto: the machine's own; or an address; or { bind: ADDRESS, advertise: ADDRESS }, IPv4 and IPv6
      threads: 2
      app_port: 40000                # one UDP port for each thread: here 40000 and 40001
      trunk_ports: 41000-41999       # one for each call

    auth:
      jwt: { algorithm: HS256, key_file: jwt.key, audience: trunkline }   # or RS256, ES256 with key_file (PEM) or jwks_file
      origins: []                    # pages of other sites that may connect, such as https://phone.example.com

    trunks:
      - name: carrier
        peers: [ 127.0.0.0/8 ]       # who may send SIP; everyone else gets silence
        uri: "sip:127.0.0.1:5080"    # where calls go out; ;transport=tcp for TCP
        codecs: [ PCMU, PCMA ]
        # auth: { username: u, password_file: p }
        rtp_source: signalled_ip     # symmetric: send to where RTP comes from; strict: the signalled address and port only
        # media_peers: [ 192.0.2.0/24 ]
        # prefer: relay              # apps are offered PCMU and PCMA first, so that nothing is transcoded
        # max_calls: 100

    users:
      - { id: alice, numbers: [ "+15551230001" ] }
      - { id: bob, numbers: [ "+15551230002" ] }

    routes:
      inbound:
        - { trunk: carrier, to: users }          # the user who has the called number; or user: ID
      outbound:
        - { prefix: "+", trunk: carrier }        # longest prefix wins
      # emergency: [ "112", "911" ]              # refused: the device must dial these itself
      # decline_code: 486                        # or 603 when every device declined

    timers:
      ring: 45s
      early180: 2s                   # or off
      media_gate_warm: 10s
      media_gate_cold: 20s
      # media_gate_outgoing: 5s
      # longest_call: 4h
      # app_grace: 30s
      # drain: 10m                   # how long SIGTERM waits for calls

    # limits: { calls: 1000, calls_per_user: 8, sessions_per_address: 200 }
    store: { sqlite: trunkline.db }
    records: { file: calls.jsonl }
    log: { level: info, format: text }   # or json

    """
}
