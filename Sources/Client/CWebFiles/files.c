#include "CWebFiles.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

// The web phone. A new file of a page has three lines here and a row below.
static const unsigned char phone_index_html[] = {
#embed "../WebPhone/index.html"
};
static const unsigned char phone_phone_css[] = {
#embed "../WebPhone/phone.css"
};
static const unsigned char phone_start_js[] = {
#embed "../WebPhone/start.js"
};
static const unsigned char phone_phone_js[] = {
#embed "../WebPhone/phone.js"
};
static const unsigned char phone_page_js[] = {
#embed "../WebPhone/page.js"
};
static const unsigned char phone_calls_js[] = {
#embed "../WebPhone/calls.js"
};
static const unsigned char phone_cards_js[] = {
#embed "../WebPhone/cards.js"
};
static const unsigned char phone_dialer_js[] = {
#embed "../WebPhone/dialer.js"
};
static const unsigned char phone_settings_js[] = {
#embed "../WebPhone/settings.js"
};
static const unsigned char phone_push_js[] = {
#embed "../WebPhone/push.js"
};
static const unsigned char phone_words_js[] = {
#embed "../WebPhone/words.js"
};
static const unsigned char phone_language_js[] = {
#embed "../WebPhone/language.js"
};
static const unsigned char phone_texts_en_js[] = {
#embed "../WebPhone/texts-en.js"
};
static const unsigned char phone_texts_de_js[] = {
#embed "../WebPhone/texts-de.js"
};
static const unsigned char phone_texts_fr_js[] = {
#embed "../WebPhone/texts-fr.js"
};
static const unsigned char phone_texts_es_js[] = {
#embed "../WebPhone/texts-es.js"
};
static const unsigned char phone_account_js[] = {
#embed "../WebPhone/account.js"
};
static const unsigned char phone_afterwards_js[] = {
#embed "../WebPhone/afterwards.js"
};
static const unsigned char phone_dialling_js[] = {
#embed "../WebPhone/dialling.js"
};
static const unsigned char phone_links_js[] = {
#embed "../WebPhone/links.js"
};
static const unsigned char phone_names_js[] = {
#embed "../WebPhone/names.js"
};
static const unsigned char phone_recent_js[] = {
#embed "../WebPhone/recent.js"
};
static const unsigned char phone_search_js[] = {
#embed "../WebPhone/search.js"
};
static const unsigned char phone_typing_js[] = {
#embed "../WebPhone/typing.js"
};
static const unsigned char phone_bell_js[] = {
#embed "../WebPhone/bell.js"
};
static const unsigned char phone_history_js[] = {
#embed "../WebPhone/history.js"
};
static const unsigned char phone_shortcuts_js[] = {
#embed "../WebPhone/shortcuts.js"
};
static const unsigned char phone_keyboard_js[] = {
#embed "../WebPhone/keyboard.js"
};
static const unsigned char phone_ended_js[] = {
#embed "../WebPhone/ended.js"
};
static const unsigned char phone_clear_js[] = {
#embed "../WebPhone/clear.js"
};
static const unsigned char phone_tones_js[] = {
#embed "../WebPhone/tones.js"
};
static const unsigned char phone_probes_js[] = {
#embed "../WebPhone/probes.js"
};
static const unsigned char phone_version_js[] = {
#embed "../WebPhone/version.js"
};
static const unsigned char phone_meters_js[] = {
#embed "../WebPhone/meters.js"
};
static const unsigned char phone_manifest_webmanifest[] = {
#embed "../WebPhone/manifest.webmanifest"
};
static const unsigned char phone_manifest_de_webmanifest[] = {
#embed "../WebPhone/manifest-de.webmanifest"
};
static const unsigned char phone_manifest_fr_webmanifest[] = {
#embed "../WebPhone/manifest-fr.webmanifest"
};
static const unsigned char phone_manifest_es_webmanifest[] = {
#embed "../WebPhone/manifest-es.webmanifest"
};
static const unsigned char phone_icon_svg[] = {
#embed "../WebPhone/icon.svg"
};
static const unsigned char phone_icon_192_png[] = {
#embed "../WebPhone/icon-192.png"
};
static const unsigned char phone_icon_512_png[] = {
#embed "../WebPhone/icon-512.png"
};

// The status page.
static const unsigned char status_index_html[] = {
#embed "../WebStatus/index.html"
};
static const unsigned char status_icon_svg[] = {
#embed "../WebPhone/icon.svg"
};
static const unsigned char status_runbooks_html[] = {
#embed "../WebStatus/status/runbooks.html"
};
static const unsigned char status_runbooks_md[] = {
#embed "../../../docs/operate/runbooks.md"
};
static const unsigned char status_status_css[] = {
#embed "../WebStatus/status/status.css"
};
static const unsigned char status_status_js[] = {
#embed "../WebStatus/status/status.js"
};
static const unsigned char status_feed_js[] = {
#embed "../WebStatus/status/feed.js"
};
static const unsigned char status_rows_js[] = {
#embed "../WebStatus/status/rows.js"
};
static const unsigned char status_texts_js[] = {
#embed "../WebStatus/status/texts.js"
};
static const unsigned char status_runbooks_js[] = {
#embed "../WebStatus/status/runbooks.js"
};

// What both pages share.
static const unsigned char ui_base_css[] = {
#embed "../WebUI/base.css"
};
static const unsigned char ui_brand_css[] = {
#embed "../WebUI/brand.css"
};
static const unsigned char ui_brand_js[] = {
#embed "../WebUI/brand.js"
};
static const unsigned char ui_elements_js[] = {
#embed "../WebUI/elements.js"
};
static const unsigned char ui_favicon_js[] = {
#embed "../WebUI/favicon.js"
};
static const unsigned char ui_focus_js[] = {
#embed "../WebUI/focus.js"
};
static const unsigned char ui_live_js[] = {
#embed "../WebUI/live.js"
};
static const unsigned char ui_notice_js[] = {
#embed "../WebUI/notice.js"
};
static const unsigned char ui_storage_js[] = {
#embed "../WebUI/storage.js"
};
static const unsigned char ui_times_js[] = {
#embed "../WebUI/times.js"
};

// The npm package that it stands on.
static const unsigned char client_trunkline_js[] = {
#embed "../WebClient/trunkline.js"
};
static const unsigned char client_call_js[] = {
#embed "../WebClient/call.js"
};
static const unsigned char client_media_js[] = {
#embed "../WebClient/media.js"
};
static const unsigned char client_session_js[] = {
#embed "../WebClient/session.js"
};
static const unsigned char client_devices_js[] = {
#embed "../WebClient/devices.js"
};
static const unsigned char client_directory_js[] = {
#embed "../WebClient/directory.js"
};
static const unsigned char client_push_js[] = {
#embed "../WebClient/push.js"
};
static const unsigned char client_events_js[] = {
#embed "../WebClient/events.js"
};
static const unsigned char client_texts_js[] = {
#embed "../WebClient/texts.js"
};
static const unsigned char client_base64_js[] = {
#embed "../WebClient/base64.js"
};
static const unsigned char client_browser_js[] = {
#embed "../WebClient/browser.js"
};
static const unsigned char client_test_call_js[] = {
#embed "../WebClient/test-call.js"
};
static const unsigned char client_preflight_js[] = {
#embed "../WebClient/preflight.js"
};
static const unsigned char client_service_worker_js[] = {
#embed "../WebClient/service-worker.js"
};

#define FILE(path, type, octets) {path, type, octets, sizeof octets}
#define SCRIPT(path, octets) FILE(path, "text/javascript; charset=utf-8", octets)

#define SHARED \
  FILE("/ui/base.css", "text/css; charset=utf-8", ui_base_css), \
  FILE("/ui/brand.css", "text/css; charset=utf-8", ui_brand_css), \
  SCRIPT("/ui/brand.js", ui_brand_js), \
  SCRIPT("/ui/elements.js", ui_elements_js), \
  SCRIPT("/ui/favicon.js", ui_favicon_js), \
  SCRIPT("/ui/focus.js", ui_focus_js), \
  SCRIPT("/ui/live.js", ui_live_js), \
  SCRIPT("/ui/notice.js", ui_notice_js), \
  SCRIPT("/ui/storage.js", ui_storage_js), \
  SCRIPT("/ui/times.js", ui_times_js)

static const CWebFile phone_files[] = {
    FILE("/", "text/html; charset=utf-8", phone_index_html),
    FILE("/phone.css", "text/css; charset=utf-8", phone_phone_css),
    SCRIPT("/start.js", phone_start_js),
    SCRIPT("/phone.js", phone_phone_js),
    SCRIPT("/page.js", phone_page_js),
    SCRIPT("/calls.js", phone_calls_js),
    SCRIPT("/cards.js", phone_cards_js),
    SCRIPT("/dialer.js", phone_dialer_js),
    SCRIPT("/settings.js", phone_settings_js),
    SCRIPT("/push.js", phone_push_js),
    SCRIPT("/words.js", phone_words_js),
    SCRIPT("/language.js", phone_language_js),
    SCRIPT("/texts-en.js", phone_texts_en_js),
    SCRIPT("/texts-de.js", phone_texts_de_js),
    SCRIPT("/texts-fr.js", phone_texts_fr_js),
    SCRIPT("/texts-es.js", phone_texts_es_js),
    SCRIPT("/account.js", phone_account_js),
    SCRIPT("/afterwards.js", phone_afterwards_js),
    SCRIPT("/dialling.js", phone_dialling_js),
    SCRIPT("/links.js", phone_links_js),
    SCRIPT("/names.js", phone_names_js),
    SCRIPT("/recent.js", phone_recent_js),
    SCRIPT("/search.js", phone_search_js),
    SCRIPT("/typing.js", phone_typing_js),
    SCRIPT("/bell.js", phone_bell_js),
    SCRIPT("/history.js", phone_history_js),
    SCRIPT("/shortcuts.js", phone_shortcuts_js),
    SCRIPT("/keyboard.js", phone_keyboard_js),
    SCRIPT("/ended.js", phone_ended_js),
    SCRIPT("/clear.js", phone_clear_js),
    SCRIPT("/tones.js", phone_tones_js),
    SCRIPT("/probes.js", phone_probes_js),
    SCRIPT("/version.js", phone_version_js),
    SCRIPT("/meters.js", phone_meters_js),
    FILE("/manifest.webmanifest", "application/manifest+json", phone_manifest_webmanifest),
    FILE("/manifest-de.webmanifest", "application/manifest+json", phone_manifest_de_webmanifest),
    FILE("/manifest-fr.webmanifest", "application/manifest+json", phone_manifest_fr_webmanifest),
    FILE("/manifest-es.webmanifest", "application/manifest+json", phone_manifest_es_webmanifest),
    FILE("/icon.svg", "image/svg+xml", phone_icon_svg),
    FILE("/icon-192.png", "image/png", phone_icon_192_png),
    FILE("/icon-512.png", "image/png", phone_icon_512_png),
    SHARED,
    SCRIPT("/trunkline/trunkline.js", client_trunkline_js),
    SCRIPT("/trunkline/call.js", client_call_js),
    SCRIPT("/trunkline/media.js", client_media_js),
    SCRIPT("/trunkline/session.js", client_session_js),
    SCRIPT("/trunkline/devices.js", client_devices_js),
    SCRIPT("/trunkline/directory.js", client_directory_js),
    SCRIPT("/trunkline/push.js", client_push_js),
    SCRIPT("/trunkline/events.js", client_events_js),
    SCRIPT("/trunkline/texts.js", client_texts_js),
    SCRIPT("/trunkline/base64.js", client_base64_js),
    SCRIPT("/trunkline/browser.js", client_browser_js),
    SCRIPT("/trunkline/preflight.js", client_preflight_js),
    SCRIPT("/trunkline/test-call.js", client_test_call_js),
    // At the root: what a service worker may control lies below it.
    SCRIPT("/service-worker.js", client_service_worker_js),
};

static const CWebFile status_files[] = {
    FILE("/", "text/html; charset=utf-8", status_index_html),
    FILE("/status/icon.svg", "image/svg+xml", status_icon_svg),
    FILE("/status/status.css", "text/css; charset=utf-8", status_status_css),
    SCRIPT("/status/status.js", status_status_js),
    SCRIPT("/status/feed.js", status_feed_js),
    SCRIPT("/status/rows.js", status_rows_js),
    SCRIPT("/status/texts.js", status_texts_js),
    SCRIPT("/status/runbooks.js", status_runbooks_js),
    FILE("/status/runbooks.html", "text/html; charset=utf-8", status_runbooks_html),
    FILE("/status/runbooks.md", "text/markdown; charset=utf-8", status_runbooks_md),
    SHARED,
};

const CWebFile *const cweb_phone_files = phone_files;
const size_t cweb_phone_file_count = sizeof phone_files / sizeof *phone_files;
const CWebFile *const cweb_status_files = status_files;
const size_t cweb_status_file_count = sizeof status_files / sizeof *status_files;
