from django.contrib import admin

from . import models


class LineInline(admin.TabularInline):
    model = models.Line
    extra = 1


class OrderAdmin(admin.ModelAdmin):
    inlines = [LineInline]
    list_display = ["name", "customer"]
    search_fields = ["name"]


admin.site.register(models.Order, OrderAdmin)
admin.site.register(models.Product)
admin.site.register(models.Category)
