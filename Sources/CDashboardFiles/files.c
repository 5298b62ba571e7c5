#include "CDashboardFiles.h"

// Each file in SpoolDashboard/Resources has an array and an entry in the table. DashboardFilesTests compares them. As
// SwiftPM resources, they would need a bundle next to the command. Swift literals would take a minute to compile.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char actions_js[] = {
#embed "../SpoolDashboard/Resources/actions.js"
};
static const unsigned char api_js[] = {
#embed "../SpoolDashboard/Resources/api.js"
};
static const unsigned char bytemap_js[] = {
#embed "../SpoolDashboard/Resources/bytemap.js"
};
static const unsigned char chart_js[] = {
#embed "../SpoolDashboard/Resources/chart.js"
};
static const unsigned char connection_js[] = {
#embed "../SpoolDashboard/Resources/connection.js"
};
static const unsigned char elements_js[] = {
#embed "../SpoolDashboard/Resources/elements.js"
};
static const unsigned char errors_js[] = {
#embed "../SpoolDashboard/Resources/errors.js"
};
static const unsigned char filters_js[] = {
#embed "../SpoolDashboard/Resources/filters.js"
};
static const unsigned char format_js[] = {
#embed "../SpoolDashboard/Resources/format.js"
};
static const unsigned char frames_js[] = {
#embed "../SpoolDashboard/Resources/frames.js"
};
static const unsigned char icon_svg[] = {
#embed "../SpoolDashboard/Resources/icon.svg"
};
static const unsigned char index_html[] = {
#embed "../SpoolDashboard/Resources/index.html"
};
static const unsigned char largemap_js[] = {
#embed "../SpoolDashboard/Resources/largemap.js"
};
static const unsigned char library_js[] = {
#embed "../SpoolDashboard/Resources/library.js"
};
static const unsigned char list_js[] = {
#embed "../SpoolDashboard/Resources/list.js"
};
static const unsigned char main_js[] = {
#embed "../SpoolDashboard/Resources/main.js"
};
static const unsigned char messages_js[] = {
#embed "../SpoolDashboard/Resources/messages.js"
};
static const unsigned char now_js[] = {
#embed "../SpoolDashboard/Resources/now.js"
};
static const unsigned char requests_js[] = {
#embed "../SpoolDashboard/Resources/requests.js"
};
static const unsigned char resource_js[] = {
#embed "../SpoolDashboard/Resources/resource.js"
};
static const unsigned char selection_js[] = {
#embed "../SpoolDashboard/Resources/selection.js"
};
static const unsigned char settings_js[] = {
#embed "../SpoolDashboard/Resources/settings.js"
};
static const unsigned char store_js[] = {
#embed "../SpoolDashboard/Resources/store.js"
};
static const unsigned char style_css[] = {
#embed "../SpoolDashboard/Resources/style.css"
};
static const unsigned char views_css[] = {
#embed "../SpoolDashboard/Resources/views.css"
};
static const unsigned char worker_js[] = {
#embed "../SpoolDashboard/Resources/worker.js"
};

static const struct DashboardFileBytes files[] = {
    {"actions.js", actions_js, sizeof actions_js},
    {"api.js", api_js, sizeof api_js},
    {"bytemap.js", bytemap_js, sizeof bytemap_js},
    {"chart.js", chart_js, sizeof chart_js},
    {"connection.js", connection_js, sizeof connection_js},
    {"elements.js", elements_js, sizeof elements_js},
    {"errors.js", errors_js, sizeof errors_js},
    {"filters.js", filters_js, sizeof filters_js},
    {"format.js", format_js, sizeof format_js},
    {"frames.js", frames_js, sizeof frames_js},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"index.html", index_html, sizeof index_html},
    {"largemap.js", largemap_js, sizeof largemap_js},
    {"library.js", library_js, sizeof library_js},
    {"list.js", list_js, sizeof list_js},
    {"main.js", main_js, sizeof main_js},
    {"messages.js", messages_js, sizeof messages_js},
    {"now.js", now_js, sizeof now_js},
    {"requests.js", requests_js, sizeof requests_js},
    {"resource.js", resource_js, sizeof resource_js},
    {"selection.js", selection_js, sizeof selection_js},
    {"settings.js", settings_js, sizeof settings_js},
    {"store.js", store_js, sizeof store_js},
    {"style.css", style_css, sizeof style_css},
    {"views.css", views_css, sizeof views_css},
    {"worker.js", worker_js, sizeof worker_js},
};

const struct DashboardFileBytes *dashboard_file(size_t index) {
    return index < sizeof files / sizeof files[0] ? &files[index] : NULL;
}
