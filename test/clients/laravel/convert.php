<?php
use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;

return new class extends Migration {
    public function up(): void
    {
        DB::statement("SELECT snowflake_convert('customers')");
        DB::statement("SELECT snowflake_convert('orders')");
    }
};
