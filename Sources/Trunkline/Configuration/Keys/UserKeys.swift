import AppSessions
import CallModel
import PhoneNumbers
import PushPolicy
import TrunklineBytes

/// `users:`, read again at SIGHUP.
extension ConfigurationKeys {
  /// `users: any`, or a list, whose last item may be `any`, or `{ id: any, max_calls: 2 }` with the permissions of every other
  /// user.
  static let users = Key<Settings>(
    "users", .list(.or(.text("`any`"), .mapping), limit: Limits.users), default: .none("no user may log in"),
    "Users who may log in, and their numbers. `any`, alone or as the last item: every `sub` of a valid token.", inner: user
  ) { field, out in
    let items = field.items(limit: Limits.users)
    for (index, item) in items.enumerated() {
      guard let draft = userRow(item) else { continue }
      if draft.user.id == anyone {
        if index != items.count - 1 { item.problem("any means all other users: write it last, and once") }
        addAnyone(draft, item, &out)
      } else {
        for key in ["claims", "webhook"] where field.parser.isWritten("\(item.path).\(key)") {
          field.parser.problem(at: "\(item.path).\(key)", "needs id: any: this user is defined by the file")
        }
        out.users.append(draft.user)
      }
    }
  }

  private static let anyone = "any"

  /// Nil after an error.
  private static func userRow(_ item: Field) -> UserDraft? {
    var out = UserDraft()
    if item.text == anyone {
      out.user.id = anyone
    } else if case .mapping = item.node {
      user.read(item, into: &out)
    } else {
      item.problem("expected a mapping with id, or any, got \(item.node.map(shown) ?? "")")
    }
    return out.user.id.isEmpty ? nil : out
  }

  private static func addAnyone(_ draft: UserDraft, _ item: Field, _ out: inout Settings) {
    if !draft.user.numbers.isEmpty {
      item.parser.problem(
        at: item.path + ".numbers", "a number belongs to one user: name the user, or see trunkline users import")
    }
    if draft.claims != nil, draft.source != nil {
      item.parser.problem(at: item.path + ".webhook", "excludes claims: choose one of the two")
    }
    var user = draft.user
    user.id = ""
    out.anyUser = user
    out.userSource = draft.source
    out.grantRules = draft.claims
    out.grantRules?.allow = user.allowance.prefixes
    out.grantRules?.maxCalls = user.allowance.calls
    out.grantRules?.callsPerHour = user.allowance.callsPerHour
  }

  private static let user = KeyTable<UserDraft>(
    .init(), .atSIGHUP,
    about: """
      With `any`, users that are not listed may log in, too. Such a user has the numbers that `trunkline users import` gave it, and may \
      dial what `routes.outbound` serves, without a limit: `{ id: any, max_calls: 2, calls_per_hour: 20, allow: [ "+49" ] }` \
      in place of `any` sets the limits of each of them. Listed users keep their own settings, and get imported numbers after their own. \
      A number in this file is never another user's by import.
      """,
    [
      .requiredText(
        "id", \.user.id,
        "`sub` of the login tokens of the user's devices; `any`, without `numbers` and as the last item: each user that is not listed."
      ),
      .init(
        "numbers", .list(userNumber.form, limit: Limits.numbersPerUser), default: .value("[]"),
        "Numbers that ring the user's devices, as the trunk sends them (E.164 with `+` is best); the first is shown in outgoing calls.",
        inner: userNumber
      ) { field, out in
        for row in field.items(limit: Limits.numbersPerUser).compactMap(userNumber.value) where !row.number.isEmpty {
          out.user.numbers.append(row.number)
          out.user.numberAccounts[row.number] = row.account
        }
      },
      .account(
        \.user.account, none: "none",
        "The account (`acct` of login tokens) of the user's numbers that have none of their own."),
      .text("name", \.user.name, none: "no name", "What trunks are shown beside the number."),
      .flag("display_name", \.user.choosesName, "Apps may choose another name."),
    ],
    limitsOfUser,
    [
      .flag(
        "record", \.user.isRecorded,
        "The user's calls are recorded, unless `recording.when` is `off`; needs `recording`."),
      .section(
        "diversions", diversions, \.user.diversions, default: .none("those of the route"),
        "Where calls go that no device answers."),
      .optionalSection(
        "claims", claims, \.claims, none: "nothing", "With `id: any`: what login tokens may grant (the claim `trunkline`)."),
      .optionalSection(
        "webhook", userWebhook, \.source, none: "none",
        "With `id: any`: the webhook for users and numbers that are in no file."),
    ],
    Key<UserDraft>.country(
      \.user.country, none: "that of the trunks, if calls go out on trunks of one country",
      "The region (ISO 3166-1), such as `DE`, or its country code: numbers may be dialled as there, and become E.164 before the route is chosen; its emergency numbers are the user's.",
      international: "What the user dials as `+`, if it is another.",
      national: "What the user dials as the country code, if it is another; empty: nothing."))

  private static let limitsOfUser: [Key<UserDraft>] = [
    .init(
      "allow", .list(.text("beginning of a number"), limit: Limits.numbersPerUser), default: .none("any number"),
      "The numbers that the user may dial."
    ) { field, out in
      guard field.isWritten else { return }
      out.user.allowance.prefixes = field.list(
        limit: Limits.numbersPerUser, "the beginning of a number such as \"+49\"", prefix)
    },
    .limit(
      "max_calls", \.user.allowance.calls, 0...1_000, "Outgoing and diverted calls at a time; 0: none. Against toll fraud."),
    .limit(
      "calls_per_hour", \.user.allowance.callsPerHour, 0...10_000,
      "Outgoing and diverted calls an hour; 0: none. Against toll fraud."),
  ]

  /// `"+15551230001"`, or `{ number: "+15551230001", account: work }`.
  private static let userNumber = KeyTable<UserNumber>(
    .init(), .atSIGHUP, short: "number",
    [
      .value(
        "number", \.number, "number", default: .required(), expected: "a number such as \"+15551230001\"",
        "Digits, with `+` in front of a country code.", parse: { number($0) }),
      .account(
        \.account, none: "that of the user",
        "Calls to the number ring only on devices that are logged in to this account."),
    ])

  private static let userWebhook = KeyTable<UserSource>(
    .init(Webhook(url: "", key: Redacted([])), cache: .seconds(Limits.usualUserCacheSeconds)), .atSIGHUP,
    about: """
      Queried with a POST that is signed like that of `routes.inbound[].route`, by number and by user; in place of `claims`. Requests and
      answers, and what applies without one: [users without the file](../integrate/users.md#a-webhook). `routes.webhook_ca` has the CAs of its certificate.
      """,
    [
      .value(
        "url", \.webhook.url, "URL of at most 2048 bytes", default: .required(),
        expected: "a URL: https://…, or http://… of this machine", "`https:`, or `http:` of this machine.", parse: webhookURL),
      .signingKey(\.webhook.key),
      .init(
        "cache", .integer(Limits.userCacheSeconds), default: .value("\(Limits.usualUserCacheSeconds)"),
        "Seconds for which an answer is cached, also that there is no such user."
      ) { field, out in
        if let seconds = field.integer(in: Limits.userCacheSeconds) { out.cache = .seconds(seconds) }
      },
    ])

  /// `claims:` of `any`: the grants that tokens may add to the permissions of `any`.
  private static let claims = KeyTable<GrantRules>(
    .init(numbers: []), .atSIGHUP,
    about: """
      The row's `allow`, `max_calls` and `calls_per_hour` hold for tokens, too: a token that grants more than all this allows is refused, \
      never narrowed. The claim, its bounds and the owner of a number: [protocol](protocol.md#what-a-token-grants).
      """,
    [
      .list(
        "numbers", \.numbers, .text("beginning of a number"), limit: Limits.numbersPerUser, default: .value("[]"),
        expected: "the beginning of a number such as \"+1555\"",
        "Beginnings of the numbers that tokens may give to their users; `\"\"` is every number.", parse: { prefix($0) }),
      .integer("max_numbers", \.maxNumbers, Limits.grantedNumbers, "Most numbers of one token."),
      .flag(
        "diversions", \.acceptsDiversions,
        "Tokens may set where calls go that no device answers: `user`, `number` or `code`. Second legs count against the user's limits."
      ),
    ])
}

private struct UserDraft: Sendable {
  var user = Routing.User(id: "", numbers: [])
  var claims: GrantRules?
  var source: UserSource?
}

private struct UserNumber: Sendable {
  var number = ""
  var account: String?
}

/// Rows of users, and of routes or trunks.
extension Key {
  /// The name in `acct` of the devices' login tokens.
  static func account(_ path: Path<String?>, none: String, _ meaning: String) -> Key {
    .optional(
      "account", path, "text of at most \(Limits.accountBytes) bytes without spaces", default: .none(none),
      expected: "an account's name of at most \(Limits.accountBytes) characters without spaces", meaning
    ) { text in
      (1...Limits.accountBytes).contains(text.utf8.count) && text.unicodeScalars.allSatisfy { $0.value > 32 && $0.value != 127 }
        ? text : nil
    }
  }

  /// What a webhook's requests are signed with.
  static func signingKey(_ path: Path<Redacted<[UInt8]>>) -> Key {
    .init(
      "key_file", .secretFile("one line"), default: .required(hint: "the secret that requests are signed with"),
      "The secret that requests are signed with (HMAC-SHA256)."
    ) { field, out in
      if let key = field.secret() { out[keyPath: path] = Redacted(key) }
    }
  }

  /// A region or a calling code, and the operator's corrections of what is dialled there.
  static func country(
    _ path: Path<NumberPlan?>, none: String, _ meaning: String, international: String, national: String
  ) -> [Key] {
    [
      .init("country", .text("region, or 1 to 3 digits"), default: .none(none), meaning) { field, out in
        guard let plan = field.value("a region such as DE, or its country code such as \"49\"", { NumberPlan(country: $0) })
        else { return }
        out[keyPath: path] = plan
        if plan.sharing.count > 1, field.text == plan.code { warn(of: plan, field) }
      },
      .init("international", .text("at most 5 digits"), default: .none("as in the region"), international) { field, out in
        if let digits = field.value("digits such as \"00\"", dialled) { out[keyPath: path]?.international = digits }
      },
      .init("national", .text("at most 5 digits"), default: .none("as in the region"), national) { field, out in
        if let digits = field.value("digits such as \"0\"", dialled) { out[keyPath: path]?.national = digits }
      },
    ]
  }

  private static func dialled(_ text: String) -> String? {
    text.utf8.count <= 5 && text.utf8.allSatisfy { (48...57).contains($0) } ? text : nil
  }

  /// Several regions have the code that is written.
  private static func warn(of plan: NumberPlan, _ field: Field) {
    let others = plan.sharing.dropFirst()
    field.problem(
      "\"\(plan.code)\" means \(plan.region); write the region for one of the others: "
        + others.prefix(8).joined(separator: ", ") + (others.count > 8 ? ", and \(others.count - 8) more" : ""), .warning)
  }
}
