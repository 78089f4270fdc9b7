extension Settings {
  /// The output of `trunkline config example`, and the configuration of `serve` without a file. It is valid once it has a
  /// `jwt.key`.
  public static let example = """
    # Trunkline configuration. Relative paths start at this file's directory; durations are 500ms, 45s, 1m or 4h.
    # What is commented out shows a default or an option; `trunkline serve --check --config FILE` names every mistake.
    # `trunkline config reference` prints every key with its limits and default.

    listen:
      sip: { udp: 127.0.0.1:5060, tcp: 127.0.0.1:5060 }   # any may be left out; each may be a list: [ 192.0.2.1:5060, "[2001:db8::1]:5060" ]
      # sip: { tls: { address: 192.0.2.1:5061, cert: sip.pem, key: sip.key } }   # ca: FILE with clients: required is mutual TLS
      app:
        address: 127.0.0.1:8080
        # tls: { cert: app.pem, key: app.key }             # required unless the address is loopback
        # proxies: [ 10.0.0.0/8 ]                          # from these alone the last X-Forwarded-For is the client's address
      admin: 127.0.0.1:7060                                # /healthz /readyz /metrics and the calls API
      # admin: { address: 192.0.2.1:7060, token_file: admin.token, tls: { cert: admin.pem, key: admin.key } }   # token_file: required off loopback

    # dns: { servers: [ 192.0.2.53 ] }   # else those of the system; names of trunks are looked up while the gateway runs

    media:
      addresses: [ auto ]            # auto: the machine's own; or an address; or { bind: ADDRESS, advertise: ADDRESS }, IPv4 and IPv6
      threads: 2
      # load_limit: 85               # percent of a core that each thread may fill; beyond it new calls get 503
      # opus_bitrate: 28000          # bit/s that apps send at most on the average (maxaveragebitrate); below 20000 without FEC
      # opus_bitrate_wide: 40000     # the same while the trunk has G722 or opus
      app_port: 40000                # one UDP port for each thread: here 40000 and 40001
      trunk_ports: 20000-21999       # two for each call: RTP and RTCP

    auth:
      # the key that your server signs login tokens with: head -c 32 /dev/urandom | base64 > jwt.key
      jwt: { algorithm: HS256, key_file: jwt.key, audience: trunkline }   # or RS256, ES256 with key_file (PEM), jwks_file or jwks_url
      origins: []                    # pages of other sites that may connect, such as https://phone.example.com

    trunks:
      - name: carrier
        peers: [ 127.0.0.0/8 ]       # addresses that may send SIP; others get no answer
        uri: "sip:127.0.0.1:5080"    # where calls go out: an address, or a name (NAPTR, SRV, A, AAAA); sips: or ;transport=udp, tcp, tls
        codecs: [ PCMU, PCMA ]       # in the order of preference; also G722, opus and L16 (linear PCM)
        dtmf: auto                   # digits as telephone-event where agreed, else as tones; or rfc4733, inband, info: one of them only
        # auth: { username: u, password_file: p }
        # realm: carrier.example     # no challenge of another realm is answered
        rtp_source: signalled_ip     # symmetric: send to where RTP of peers and media_peers comes from; strict: the SDP's address and port only
        # media_peers: [ 192.0.2.0/24 ]   # further addresses of its RTP, beside the SDP's
        # prefer: wide               # G722 and opus go before the others of codecs; cheap: PCMU and PCMA do. relay: apps are offered the trunk's codec first
        # max_calls: 100             # at a time; calls_per_second: 10 for new ones. Beyond: 503, or the next trunk of the route
        # register: true             # or { user: U, expires: 10m }; with the password of auth
        # probe: 30s                 # OPTIONS; { interval: 30s, down_after: 3, up_after: 2 }: no calls while it is down
        # numbers: { country: DE, outbound: [ { prefix: "+49", strip: 3, add: "0" } ] }   # also inbound:, caller:, national:, international:
        # tls: { ca: carrier-ca.pem, cert: own.pem, key: own.key }   # else the system's authorities and no certificate of ours
        # reliable: supported        # provisional responses (100rel): off, supported, required
        # session_timer: 1800        # seconds, or off; session_minimum: 90
        # hold: signal               # an app's hold becomes a re-INVITE; local: it stays here
        # hold_audio: music.wav      # what the trunk hears while an app holds: a WAV of 40 ms at least, or noise, silence
        # redirects: follow          # a 3xx within the trunk's own hosts; refuse
        # trust_identity: true       # believe P-Asserted-Identity, Diversion and History-Info, and give ours
        # transfers: true            # serve REFER and Replaces
        # late_offer: true           # INVITEs without SDP
        # location: true             # emergency calls carry the location that the app gives (RFC 6442)
        # record_private_numbers: true   # withheld numbers stay in journal and records
        # srtp: required             # RTP/SAVP with keys in the SDP; optional: RTP/AVP with keys beside it; over TLS unless srtp_without_tls: true
      # - name: pbx                  # one trunk may accept peers that cannot be listed: they answer a challenge
      #   peers: any
      #   peer_auth: { username: pbx, password_file: pbx.password }

    users:
      - { id: alice, numbers: [ "+15551230001" ] }
      - { id: bob, numbers: [ "+15551230002" ] }
      # - id: erin                   # calls to a number of an account ring only on devices that are logged in to it (trunkline token --account)
      #   numbers: [ "+15551230005", { number: "+15551230006", account: work } ]   # also account: for all of a user's, or of a route's
      # - { id: carol, numbers: [ "+15551230003" ], allow: [ "+1" ], max_calls: 2, calls_per_hour: 30 }   # what she may dial
      #   name: Carol                # what trunks are shown beside the number; display_name: true lets her apps choose another
      # - id: dave                   # when no device answers his call; the same under a route of routes.inbound, for users without a rule
      #   numbers: [ "+15551230004" ]
      #   diversions:
      #     unreached: { number: "+15557654321", after: 20s }     # no device rings: a second leg on his behalf; show_caller: true
      #     no_answer: { user: carol, after: 30s }                # carol's devices ring
      #     busy: { code: 486 }                                   # another final response
      #     declined: { play: away.wav }                          # then BYE; early: true plays it before the call is answered; shows: diverted hides the missed call
      #     media_failed: { number: "+15557654321" }

    routes:
      inbound:
        - { trunk: carrier, to: users }          # the user who has the called number; or user: ID
        # - { trunk: carrier, route: { webhook: "https://crm.example.com/route", key_file: webhook.key, fallback: users } }
        #   queried for the called user, {"call", "from", "name", "to", …}, with trunkline-signature: t=SECONDS,v1=HMAC-SHA256(key, "SECONDS.BODY");
        #   answers {"users": [ID…], "name"?, "from"?, "parameters"?} or {"code": 404} within 1 s, else fallback: users, { user: ID } or { code: 503 }
      # webhook_ca: ca.pem           # else the system's authorities
      outbound:
        - { prefix: "+", trunk: carrier }        # longest prefix wins
        # - { prefix: "+49", trunks: [ a, b ] }  # b when a is full, down or silent; or { trunk: a, priority: 1, weight: 70 }
        # - { prefix: "112", trunk: carrier, emergency: true }   # else emergency numbers are refused
      # users: trunk                             # calls between users are dialled like any number, else connected here
      # emergency: [ "1122" ]                    # beside those of the users' regions; refused unless a row has emergency: the device dials them itself
      # decline_code: 486                        # or 603 when every device declined

    # push:                          # how apps that are not connected are woken; keys are read again at SIGHUP
    #   gateway: wss://phone.example.com/v1/connect          # where a woken app connects
    #   apns:
    #     key_file: AuthKey_ABC123DEFG.p8                    # or certificate: { cert: voip.pem, key: voip.key }
    #     key_id: ABC123DEFG
    #     team_id: DEF123GHIJ
    #     topic: org.example.phone.voip                      # for apps that name none; environment: production, or sandbox
    #     # url: https://127.0.0.1:2197                      # instead of Apple's: trunkline-lab push-sandbox; then ca: sandbox.pem below
    #   fcm: { service_account: firebase.json }              # url:, token_url: instead of Google's
    #   webpush: { key_file: vapid.pem, subject: "mailto:ops@example.com" }   # a P-256 key of your own; hosts: [ ... ] in place of the browsers' services
    #   # ca: sandbox.pem                                    # authorities trusted instead of the system's

    # verifier: https://verifier.example/check   # verifies the caller's identity (STIR/SHAKEN); { url: https://…, ca: FILE }

    # turn:                          # for apps behind firewalls that block UDP
    #   urls: [ "turn:turn.example.com:3478?transport=udp", "turns:turn.example.com:443?transport=tcp" ]
    #   secret_file: turn.key        # static-auth-secret of coturn; ttl: 24h

    # events:                        # what happens to calls, for your backend: docs/integrate/events.md
    #   webhooks:
    #     - url: https://backend.example/trunkline/events
    #       key_file: events.key     # whsec_…; kinds: [ call.started, call.connected, call.ended ]

    # recording: { when: api, format: ogg, notice: notice.wav }   # or on: every call; docs/integrate/recording.md
    # history: { keep: 90d, per_user: 1000 }   # calls in the users' histories: docs/integrate/directory.md

    timers:
      ring: 45s
      early180: 2s                   # or off
      media_gate_warm: 10s
      media_gate_cold: 20s
      # media_gate_outgoing: 5s
      # longest_call: 4h
      # app_grace: 30s
      # drain: 10m                   # how long SIGTERM waits for calls; 2 s later the process has ended

    # limits: { calls: 1000, calls_per_user: 8, sessions_per_address: 200, memory_mib: 0 }
    #   At 90 % of memory_mib new calls get 503; 0: what the control group allows, or the machine has.
    store: { sqlite: trunkline.db }   # devices; calls that have begun are in trunkline.db.started beside it: keep both
    records: { file: calls.jsonl }
    log: { level: info, format: text }   # or json; numbers: full shows telephone numbers, else masked

    """
}
