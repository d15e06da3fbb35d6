from django.contrib import admin

from .models import ByDefault, Invoice, Line, OfDefault


class LineInline(admin.TabularInline):
    model = Line
    extra = 1


class InvoiceAdmin(admin.ModelAdmin):
    inlines = [LineInline]


class OfDefaultInline(admin.TabularInline):
    model = OfDefault
    extra = 1


class ByDefaultAdmin(admin.ModelAdmin):
    inlines = [OfDefaultInline]


admin.site.register(Invoice, InvoiceAdmin)
admin.site.register(ByDefault, ByDefaultAdmin)
