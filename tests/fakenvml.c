/* A FAKE libnvidia-ml.so.1, because the machines that run the tests have no GPU.
 *
 * It implements the NVML calls that inferslo makes, with the signatures of nvml.h, and answers what
 * a script says: the text file named by FAKE_NVML_SCRIPT, read anew at every call, so that a test
 * can change the answers in mid-run. One line per answer: SUBJECT KEY VALUE, where SUBJECT is
 * "system", "gpu0" or, for a MIG part, "gpu0.1", and KEY is
 *
 *   return:CALL  return code of this call ("*": of every call about the subject)
 *   hang:CALL    any value: the call does not return while the line is there
 *   field:ID:SCOPE   TYPE:VALUE[:LATENCY_US], NVML value type 0..6
 *   field-return:ID:SCOPE   return code of this entry alone
 *   event:N      GPU:TYPE:DATA, the Nth event of this process (subject "system")
 *   anything else: the value itself (see the calls below)
 *
 * What the script does not name is NVML_ERROR_NOT_SUPPORTED. As in the real library: initialisation
 * is counted, handles of an earlier initialisation are invalid, and a GPU that was lost stays lost
 * until the next one. Every call is appended to FAKE_NVML_SCRIPT.log as "CALL SUBJECT".
 *
 * With -DR470 it lacks what a driver older than R510 lacks.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long u64;
typedef struct { int gpu, part, generation; } Device;
typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } MemoryV2;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned version, sensor; int degrees; } TemperatureV;
typedef struct { unsigned version; int degrees; } Margin;
typedef struct { unsigned pid; u64 used; unsigned instance, compute; } Process;
typedef struct { Device *device; u64 type, data; unsigned instance, compute; } Event;
typedef struct { int registered[16]; int seen; } EventSet;
typedef union {
    double d; unsigned ui; unsigned long ul; u64 ull; long long sll; int si; unsigned short us;
} Number;
typedef struct {
    unsigned id, scope; long long timestamp, latency; int type, code; Number value;
} Field;

enum { OK, UNINITIALIZED, INVALID, UNSUPPORTED, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10, LOST = 15 };
enum { GPUS = 16, PARTS = 8, GENERATIONS = 64 };

static Device devices[GENERATIONS][GPUS][PARTS];
static int users, generation;
static int lost[GPUS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void nap(void) {
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
}

/* The value of a line of the script, in `out`; 0 if there is none. */
static int look(const char *subject, const char *key, char *out, size_t size) {
    char line[512], wanted[160];
    int found = 0;
    const char *path = getenv("FAKE_NVML_SCRIPT");
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f) return 0;
    snprintf(wanted, sizeof wanted, "%s %s ", subject, key);
    while (!found && fgets(line, sizeof line, f))
        if (!strncmp(line, wanted, strlen(wanted))) {
            line[strcspn(line, "\n")] = 0;
            snprintf(out, size, "%s", line + strlen(wanted));
            found = 1;
        }
    fclose(f);
    return found;
}

static int has(const char *subject, const char *prefix, const char *call) {
    char key[128], value[256];
    snprintf(key, sizeof key, "%s:%s", prefix, call);
    return look(subject, key, value, sizeof value) ? atoi(value) : -1;
}

static void note(const char *call, const char *subject) {
    char path[512];
    snprintf(path, sizeof path, "%s.log", getenv("FAKE_NVML_SCRIPT"));
    FILE *f = fopen(path, "a");
    if (f) { fprintf(f, "%s %s\n", call, subject); fclose(f); }
}

static void name_of(const Device *d, char *out) {
    if (!d) strcpy(out, "system");
    else if (d->part) sprintf(out, "gpu%d.%d", d->gpu, d->part);
    else sprintf(out, "gpu%d", d->gpu);
}

/* What every call does first: it may hang, fail, or find its GPU lost. */
static int enter(const char *call, const Device *d) {
    char subject[32];
    int code;
    name_of(d, subject);
    note(call, subject);
    while (has(subject, "hang", call) >= 0 || has(subject, "hang", "*") >= 0) nap();
    if (!users) return UNINITIALIZED;
    if (d && d->generation != generation) return INVALID;
    code = has(subject, "return", "*");
    if (code < 0) code = has(subject, "return", call);
    if (d && code == LOST) lost[d->gpu] = 1;
    if (d && lost[d->gpu]) return LOST;
    return code > 0 ? code : OK;
}

#define ENTER(device) do { int code = enter(__func__, device); if (code) return code; } while (0)

static int text(const Device *d, const char *key, char *out, unsigned size) {
    char subject[32];
    name_of(d, subject);
    return look(subject, key, out, size) ? OK : UNSUPPORTED;
}

static int number(const Device *d, const char *key, u64 *out) {
    char value[64];
    int code = text(d, key, value, sizeof value);
    if (code == OK) *out = strtoull(value, NULL, 10);
    return code;
}

static int whole(const Device *d, const char *key, unsigned *out) {
    u64 value;
    int code = number(d, key, &value);
    if (code == OK) *out = (unsigned)value;
    return code;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    note(__func__, "system");
    while (has("system", "hang", __func__) >= 0) nap();
    int code = has("system", "return", __func__);
    if (code > 0) return code;
    pthread_mutex_lock(&mutex);
    if (!users++) {
        generation++;
        memset(lost, 0, sizeof lost);
        for (int g = 0; g < GPUS; g++)
            for (int p = 0; p < PARTS; p++)
                devices[generation % GENERATIONS][g][p] = (Device){g, p, generation};
    }
    pthread_mutex_unlock(&mutex);
    return OK;
}

int nvmlShutdown(void) {
    ENTER(NULL);
    pthread_mutex_lock(&mutex);
    users--;
    pthread_mutex_unlock(&mutex);
    return OK;
}

const char *nvmlErrorString(int code) { (void)code; return "an error of the fake"; }

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    ENTER(NULL);
    return text(NULL, "driver", out, size);
}

int nvmlDeviceGetCount_v2(unsigned *count) { ENTER(NULL); return whole(NULL, "count", count); }

static int handle(unsigned gpu, Device **out) {
    Device *d = &devices[generation % GENERATIONS][gpu][0];
    int code = enter("nvmlDeviceGetHandle", d);
    if (code == OK) *out = d;
    return code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    char key[32];
    unsigned gpu = index;
    ENTER(NULL);
    snprintf(key, sizeof key, "index:%u", index); /* which GPU has the index now */
    whole(NULL, key, &gpu);
    return handle(gpu, out);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, Device **out) {
    char subject[32], value[96];
    ENTER(NULL);
    for (unsigned gpu = 0; gpu < GPUS; gpu++) {
        snprintf(subject, sizeof subject, "gpu%u", gpu);
        if (look(subject, "uuid", value, sizeof value) && !strcmp(uuid, value))
            return handle(gpu, out);
    }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(Device *d, char *out, unsigned size) {
    ENTER(d);
    return text(d, "uuid", out, size);
}

int nvmlDeviceGetName(Device *d, char *out, unsigned size) {
    ENTER(d);
    return text(d, "name", out, size);
}

int nvmlDeviceGetMemoryInfo(Device *d, Memory *m) {
    u64 reserved = 0;
    int code;
    ENTER(d);
    if ((code = number(d, "memory.total", &m->total))) return code;
    number(d, "memory.free", &m->free);
    number(d, "memory.used", &m->used);
    number(d, "memory.reserved", &reserved);
    m->used += reserved;
    return OK;
}

int nvmlDeviceGetUtilizationRates(Device *d, Utilization *u) {
    int code;
    ENTER(d);
    if ((code = whole(d, "utilization.gpu", &u->gpu))) return code;
    return whole(d, "utilization.memory", &u->memory);
}

static void fill(const Device *d, Field *f) {
    char key[48], value[96], subject[32];
    name_of(d, subject);
    f->code = UNSUPPORTED;
    memset(&f->value, 0, sizeof f->value); /* as seen: 0 beside "not supported" */
    snprintf(key, sizeof key, "field:%u:%u", f->id, f->scope);
    if (look(subject, key, value, sizeof value)) {
        char *rest;
        f->code = OK;
        f->type = (int)strtol(value, &rest, 10);
        const char *start = rest + 1;
        switch (f->type) {
        case 0: f->value.d = strtod(start, &rest); break;
        case 1: f->value.ui = (unsigned)strtoul(start, &rest, 10); break;
        case 4: f->value.sll = strtoll(start, &rest, 10); break;
        case 5: f->value.si = (int)strtol(start, &rest, 10); break;
        case 6: f->value.us = (unsigned short)strtoul(start, &rest, 10); break;
        default: f->value.ull = strtoull(start, &rest, 10);
        }
        f->latency = *rest == ':' ? atoll(rest + 1) : 0;
    }
    snprintf(key, sizeof key, "%u:%u", f->id, f->scope);
    int code = has(subject, "field-return", key);
    if (code > 0) f->code = code;
}

int nvmlDeviceGetFieldValues(Device *d, int count, Field *fields) {
    ENTER(d);
    for (int i = 0; i < count; i++) fill(d, &fields[i]);
    return OK;
}

int nvmlDeviceGetTemperature(Device *d, unsigned sensor, unsigned *degrees) {
    (void)sensor;
    ENTER(d);
    return whole(d, "temperature", degrees);
}

int nvmlDeviceGetTemperatureThreshold(Device *d, unsigned limit, unsigned *degrees) {
    char key[32];
    ENTER(d);
    snprintf(key, sizeof key, "threshold:%u", limit);
    return whole(d, key, degrees);
}

int nvmlDeviceGetPowerUsage(Device *d, unsigned *mw) { ENTER(d); return whole(d, "power", mw); }

int nvmlDeviceGetEnforcedPowerLimit(Device *d, unsigned *mw) {
    ENTER(d);
    return whole(d, "power.limit", mw);
}

int nvmlDeviceGetClockInfo(Device *d, unsigned domain, unsigned *mhz) {
    char key[32];
    ENTER(d);
    snprintf(key, sizeof key, "clock:%u", domain);
    return whole(d, key, mhz);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *d, u64 *bits) {
    ENTER(d);
    return number(d, "reasons", bits);
}

/* "processes" is a list PID:BYTES,PID:BYTES,… or empty. */
static int list(const Device *d, unsigned *count, Process *out) {
    char value[512], *rest = value;
    unsigned n = 0;
    if (text(d, "processes", value, sizeof value)) return UNSUPPORTED;
    for (char *item; (item = strsep(&rest, ",")) && *item && *item != '-'; n++)
        if (out && n < *count) {
            out[n] = (Process){(unsigned)atoi(item), strtoull(strchr(item, ':') + 1, NULL, 10), 0, 0};
        }
    int code = n && (!out || n > *count) ? TOO_SMALL : OK;
    *count = n;
    return code;
}

int nvmlDeviceGetComputeRunningProcesses_v2(Device *d, unsigned *count, Process *out) {
    ENTER(d);
    return list(d, count, out);
}

#ifndef R470
int nvmlDeviceGetMemoryInfo_v2(Device *d, MemoryV2 *m) {
    int code;
    ENTER(d);
    if ((code = number(d, "memory.total", &m->total))) return code;
    number(d, "memory.free", &m->free);
    number(d, "memory.used", &m->used);
    return number(d, "memory.reserved", &m->reserved);
}

int nvmlDeviceGetTemperatureV(Device *d, TemperatureV *t) {
    unsigned degrees;
    ENTER(d);
    int code = whole(d, "temperature", &degrees);
    if (code == OK) t->degrees = (int)degrees;
    return code;
}

int nvmlDeviceGetMarginTemperature(Device *d, Margin *m) {
    char value[32];
    ENTER(d);
    int code = text(d, "margin", value, sizeof value);
    if (code == OK) m->degrees = atoi(value);
    return code;
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *d, u64 *bits) {
    ENTER(d);
    return number(d, "reasons", bits);
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *count, Process *out) {
    ENTER(d);
    return list(d, count, out);
}
#endif

int nvmlDeviceGetMigMode(Device *d, unsigned *now, unsigned *pending) {
    ENTER(d);
    int code = whole(d, "mig", now);
    *pending = *now;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *count) {
    (void)d;
    ENTER(d);
    *count = PARTS - 1;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned index, Device **out) {
    char uuid[96];
    ENTER(d);
    Device *part = &devices[generation % GENERATIONS][d->gpu][index + 1];
    if (text(part, "uuid", uuid, sizeof uuid)) return NOT_FOUND;
    *out = part;
    return OK;
}

int nvmlDeviceGetGpuInstanceId(Device *d, unsigned *id) { ENTER(d); return whole(d, "instance", id); }

static int read_event(int n, char *out, size_t size) {
    char key[16];
    snprintf(key, sizeof key, "event:%d", n);
    return look("system", key, out, size);
}

int nvmlEventSetCreate(EventSet **out) {
    ENTER(NULL);
    char value[64];
    *out = calloc(1, sizeof **out);
    while (read_event((*out)->seen, value, sizeof value)) (*out)->seen++; /* no replay of the past */
    return OK;
}

int nvmlDeviceRegisterEvents(Device *d, u64 types, EventSet *set) {
    (void)types;
    ENTER(d);
    set->registered[d->gpu] = 1;
    return OK;
}

int nvmlEventSetWait_v2(EventSet *set, Event *event, unsigned timeout) {
    char value[64];
    unsigned gpu;
    ENTER(NULL);
    for (unsigned waited = 0;; waited += 2) {
        for (int g = 0; g < GPUS; g++)
            if (set->registered[g] && lost[g]) return LOST;
        if (read_event(set->seen, value, sizeof value)) {
            set->seen++;
            memset(event, 0, sizeof *event);
            sscanf(value, "%u:%llu:%llu", &gpu, &event->type, &event->data);
            event->device = &devices[generation % GENERATIONS][gpu][0];
            if (set->registered[gpu]) return OK;
        }
        if (waited >= timeout) return TIMEOUT;
        nap();
    }
}

int nvmlEventSetFree(EventSet *set) { ENTER(NULL); free(set); return OK; }
